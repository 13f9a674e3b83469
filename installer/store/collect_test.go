package store

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"slipway/manifests"
)

func TestCollectKeepsRootsAndForeignFiles(t *testing.T) {
	home := openHome(t)
	kept := lockOf(t, sample)
	dropped := lockOf(t, sample)
	dropped.Revision = "ffffffffffffffffffffffffffffffffffffffff"
	installAll(t, home, kept, sample)
	installAll(t, home, dropped, sample)
	foreign := ModelDir(dropped.Repo, dropped.Revision) + "/mine.txt"
	must(t, home.WriteFile(foreign, []byte("mine"), 0o600))
	must(t, home.MkdirAll(quarantineDir, 0o755))
	must(t, home.WriteFile(quarantineName(), []byte("bad"), 0o600))

	garbage, err := Collect(home, []Root{{kept.Repo, kept.Revision, "receipt"}})
	must(t, err)
	if _, err := home.Stat(filePath(dropped, "config.json")); err != nil {
		t.Fatal("the list alone removed something")
	}
	for _, g := range garbage {
		if strings.HasPrefix(g.Path, ModelDir(kept.Repo, kept.Revision)) || g.Path == foreign {
			t.Errorf("%s is taken for garbage", g.Path)
		}
	}
	freed, err := Remove(home, garbage)
	must(t, err)
	if freed < int64(len(sample["config.json"])) {
		t.Errorf("freed %d bytes", freed)
	}
	if report, err := Verify(context.Background(), home, kept, true); err != nil || !report.OK() {
		t.Errorf("a root lost files: %+v %v", report.Bad(), err)
	}
	if data, err := home.ReadFile(foreign); err != nil || string(data) != "mine" {
		t.Errorf("a foreign file: %v", err)
	}
	for _, name := range []string{filePath(dropped, "config.json"), LockPath(dropped.Repo, dropped.Revision),
		quarantineName()} {
		if _, err := home.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there", name)
		}
	}
	if again, err := Collect(home, []Root{{kept.Repo, kept.Revision, "receipt"}}); err != nil || len(again) != 0 {
		t.Errorf("a second collection finds %v, %v", again, err)
	}
}

func TestCollectLeavesADownloadInProgress(t *testing.T) {
	home, lock := openHome(t), lockOf(t, sample)
	p, err := OpenPartial(home, lock.Files[0])
	must(t, err)
	must(t, p.SaveJournal([]byte("{}")))
	garbage, err := Collect(home, nil)
	must(t, err)
	if _, err := Remove(home, garbage); err != nil {
		t.Fatal(err)
	}
	if newest, _ := p.Journals(); newest == nil {
		t.Error("the journal of a running download was removed")
	}
	must(t, p.Close())
	garbage, err = Collect(home, nil)
	must(t, err)
	_, err = Remove(home, garbage)
	must(t, err)
	if left, _ := Collect(home, nil); len(left) != 0 {
		t.Errorf("left after the download has gone: %v", left)
	}
}

func TestRemoveRefusesPathsOutside(t *testing.T) {
	home := openHome(t)
	must(t, home.WriteFile("receipt.json", nil, 0o600))
	for _, path := range []string{"receipt.json", "models/../receipt.json", "../x", "models"} {
		if _, err := Remove(home, []Garbage{{Path: path}}); err == nil {
			t.Errorf("%s was removed", path)
		}
	}
}

func quarantineName() string {
	return quarantineDir + "/" + strings.Repeat("ab", 32)
}

// An interrupted set-up of a shipped lock has partial files and no lock beside the model yet.
func TestCollectKeepsThePartialFilesOfARootWithoutALockInTheHome(t *testing.T) {
	var shipped manifests.Lock
	for _, m := range manifests.All() {
		if lock, ok := manifests.BundledLock(m.Repo, m.Revision); ok {
			shipped = lock
			break
		}
	}
	if len(shipped.Files) == 0 {
		t.Fatal("no lock is shipped: this test would see nothing")
	}
	home := openHome(t)
	p, err := OpenPartial(home, shipped.Files[0])
	must(t, err)
	must(t, p.SaveJournal([]byte("{}")))
	must(t, p.Close())
	if garbage, err := Collect(home, []Root{{shipped.Repo, shipped.Revision, "open plan"}}); err != nil ||
		len(garbage) != 0 {
		t.Errorf("taken for garbage: %v, %v", garbage, err)
	}
	if garbage, err := Collect(home, nil); err != nil || len(garbage) != 2 {
		t.Errorf("without the root: %v, %v", garbage, err)
	}
}

func TestRootOfAFolder(t *testing.T) {
	lock := lockOf(t, sample)
	if r, ok := RootOf(ModelDir(lock.Repo, lock.Revision), ""); !ok || r.Repo != lock.Repo ||
		r.Revision != lock.Revision {
		t.Errorf("%+v %v", r, ok)
	}
	for _, folder := range []string{"", ".", "models", "models/org--name", "/elsewhere/org--name/" +
		string(lock.Revision),
		"engines/x", "models/../x/" + string(lock.Revision)} {
		if r, ok := RootOf(folder, ""); ok {
			t.Errorf("%q is the model %+v", folder, r)
		}
	}
}

func TestReplacedLockCountsFromThenOn(t *testing.T) {
	home, lock := openHome(t), lockOf(t, sample)
	must(t, SaveLock(home, lockOf(t, map[string]string{"config.json": `{"a":7}`})))
	must(t, ReplaceLock(home, lock))
	if locked, err := Locked(home); err != nil || len(locked) != 1 || locked[0].Repo != lock.Repo {
		t.Fatalf("%v %v", locked, err)
	}
	must(t, SaveLock(home, lock))
}
