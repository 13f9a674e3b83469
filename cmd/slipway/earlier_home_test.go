package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/installer/plan"
)

// earlierFile is a file of testdata/earlier_home for the home of this test.
func earlierFile(t *testing.T, r *rig, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/earlier_home", name))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "@HOME@", r.home)
	text = strings.ReplaceAll(text, "18123", fmt.Sprint(r.port))
	return []byte(text)
}

// placeEarlierHome makes the home as the earlier version left it, with or without the plan that it had begun.
func placeEarlierHome(t *testing.T, r *rig, begun bool) {
	t.Helper()
	for _, folder := range plan.Folders {
		if err := os.MkdirAll(filepath.Join(r.home, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	base := "testdata/earlier_home/home"
	err := filepath.WalkDir(base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !begun && strings.HasSuffix(path, "journal.ndjson") {
			return err
		}
		name, _ := filepath.Rel(base, path)
		to := filepath.Join(r.home, strings.Replace(name, "marker", plan.MarkerPath, 1))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, earlierFile(t, r, filepath.Join("home", name)), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A home of the version before sentences left the digest still works: it is known, set up again, and removed whole.
func TestHomeOfAnEarlierVersionStillWorks(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"set up": false, "with a plan that was begun": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			placeEarlierHome(t, r, begun)
			code, out, errOut := r.run(nil, "status", "--json")
			if code != exitNotReady || !strings.Contains(out, `"set_up": true`) ||
				!strings.Contains(out, `"model": "pocket"`) ||
				strings.Contains(out, `"open_plan": ""`) == begun {
				t.Fatalf("status: %d\n%s%s", code, out, errOut)
			}
			if _, text, _ := r.run(nil, "status"); strings.Contains(text, "setup --home "+r.home) != begun {
				t.Fatalf("the command that continues: %s", text)
			}
			code, out, errOut = r.run(nil, "setup", "--yes", "--no-launch")
			if code != exitOK {
				t.Fatalf("setup: %d\n%s%s", code, out, errOut)
			}
			if begun && !strings.Contains(errOut, "is replaced by this one; what it made is kept") {
				t.Fatalf("the plan that was begun goes without a word:\n%s", errOut)
			}
			receipts, err := filepath.Glob(filepath.Join(r.home, "state/receipts/*.json"))
			if want := map[bool]int{false: 2, true: 3}[begun]; err != nil || len(receipts) != want {
				t.Fatalf("%d receipts, want %d: %v", len(receipts), want, err)
			}
			if code, out, errOut := r.run(nil, "verify"); code != exitOK {
				t.Fatalf("verify: %d\n%s%s", code, out, errOut)
			}
			if code, out, errOut := r.run(nil, "uninstall", "--yes"); code != exitOK {
				t.Fatalf("uninstall: %d\n%s%s", code, out, errOut)
			}
			if _, err := os.Lstat(r.home); err == nil {
				t.Fatal("the home is still there")
			}
		})
	}
}

// recordedHome is the home that the digest of the plan file in testdata/earlier_home covers.
const recordedHome = "/tmp/fix/home"

// A plan file of that version is not applied; one sentence says to make the plan again, and nothing is done.
func TestPlanFileOfAnEarlierVersionHasToBeMadeAgain(t *testing.T) {
	data, err := os.ReadFile("testdata/earlier_home/plan.json")
	if err != nil {
		t.Fatal(err)
	}
	if !plan.OfEarlierVersion([]byte(strings.ReplaceAll(string(data), "@HOME@", recordedHome))) {
		t.Fatal("a plan file of that version is not recognised")
	}
	r := newRig(t)
	var p plan.Plan
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), "@HOME@", r.home)), &p); err != nil {
		t.Fatal(err)
	}
	p.Digest = "" // that version's rule, for the home of this test
	canonical, err := plan.Canonical(p)
	if err != nil {
		t.Fatal(err)
	}
	p.Digest = fmt.Sprintf("sha256:%x", sha256.Sum256(canonical))
	file := filepath.Join(r.dir, "plan.json")
	if err := os.WriteFile(file, plan.WriteFile(p), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := r.run(nil, "apply", "--plan", file, "--digest", p.Digest)
	if code != exitStale || !strings.Contains(errOut, "earlier version of slipway") ||
		!strings.Contains(errOut, "Nothing was done. Make a new plan, show it to the person, and apply it with its own digest.") {
		t.Fatalf("%d\n%s", code, errOut)
	}
	if _, err := os.Lstat(r.home); err == nil {
		t.Fatal("something was done")
	}
}
