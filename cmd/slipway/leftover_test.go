package main

import (
	"os"
	"path/filepath"
	"testing"

	"slipway/installer/apply"
)

// A run that was killed between writing a file and renaming it leaves a name that nobody uses again. The next run
// removes those of ours, and no other.
func TestSetupKilledBetweenATemporaryFileAndItsName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	want := r.undisturbed()
	code, _, errOut := r.run([]string{apply.KillVariable + "=6:before"}, r.setupArgs("--yes")...)
	if code != -1 {
		t.Fatalf("not killed: %d\n%s", code, errOut)
	}
	locks, err := filepath.Glob(filepath.Join(r.home, "models", "slipway--pocket", "*.lock.json"))
	if err != nil || len(locks) != 1 {
		t.Fatalf("%v %v", locks, err)
	}
	put := func(name string) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(r.home, name)
		}
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if err == nil {
			err = os.WriteFile(name, []byte("half"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const foreign = "models/slipway--pocket/mine.new"
	for _, name := range []string{
		locks[0] + ".0123456789ab.new",
		"models/.quarantine/" + r.digest[len("sha256:"):] + ".json.0123456789ab.new",
		"engines/.partial-0123456789abcdef/slipway-server",
		"engines/.partial-0123456789abcdef/.engine.json.new",
		"state/receipts/.0123456789abcdef.json.new",
		foreign,
	} {
		put(name)
	}
	if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	if err := os.Remove(filepath.Join(r.home, foreign)); err != nil {
		t.Fatalf("a file that is not ours was swept: %v", err)
	}
	os.Remove(filepath.Join(r.home, "models/.quarantine")) // the folder is the test's own
	if got := r.tree(); got != want {
		t.Fatalf("the tree differs:\n%s\nwant\n%s", got, want)
	}
	r.clean()
}
