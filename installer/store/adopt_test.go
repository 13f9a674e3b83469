package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// foreignFolder lays sample files out in a folder of the user's and returns it with a picture of every file in it.
func foreignFolder(t *testing.T, contents map[string]string) (dir string, unchanged func()) {
	t.Helper()
	dir = t.TempDir()
	for name, data := range contents {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(data), 0o640))
	}
	picture := func() map[string]string {
		seen := map[string]string{}
		filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			must(t, err)
			info, err := os.Lstat(path)
			must(t, err)
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(path)
				must(t, err)
				seen[path] = info.Mode().String() + info.ModTime().String() + string(data)
			} else {
				seen[path] = info.Mode().String()
			}
			return nil
		})
		return seen
	}
	before := picture()
	return dir, func() {
		t.Helper()
		after := picture()
		if len(after) != len(before) {
			t.Error("files came or went in the user's folder")
		}
		for path, was := range before {
			if after[path] != was {
				t.Errorf("%s was changed", path)
			}
		}
	}
}

func TestAdoptionNeverTouchesTheSource(t *testing.T) {
	lock := lockOf(t, sample)
	dir, unchanged := foreignFolder(t, sample)
	home := openHome(t)
	found, busy := Find(context.Background(), lock, []string{dir, filepath.Join(dir, "not there")})
	if len(busy) != 0 {
		t.Errorf("busy: %q", busy)
	}
	adopted, wrong, err := AdoptAll(context.Background(), home, lock, found)
	if err != nil || len(wrong) != 0 || len(adopted) != 2 { // the empty file needs no source
		t.Fatalf("adopted %q, wrong %v, %v", adopted, wrong, err)
	}
	unchanged()
	for _, name := range adopted {
		ours, err := home.Stat(filePath(lock, name))
		must(t, err)
		theirs, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if os.SameFile(ours, theirs) {
			t.Errorf("%s is one file with the user's: a change to one would change the other", name)
		}
	}
	installAll(t, home, lock, sample)
	report, err := Verify(context.Background(), home, lock, true)
	if err != nil || !report.OK() {
		t.Fatalf("%+v %v", report.Bad(), err)
	}
}

func TestAdoptionNamesFilesOfTheRightSizeAndWrongBytes(t *testing.T) {
	lock := lockOf(t, sample)
	dir, unchanged := foreignFolder(t, map[string]string{"config.json": `{"a":2}`, "other name": sample["config.json"]})
	home := openHome(t)
	found, _ := Find(context.Background(), lock, []string{dir})
	adopted, wrong, err := AdoptAll(context.Background(), home, lock, found)
	must(t, err)
	if len(wrong) != 1 || wrong[0].Path != filepath.Join(dir, "config.json") || wrong[0].Found == "" {
		t.Errorf("the wrong one is not named with its hash: %v", wrong)
	}
	if len(adopted) != 1 {
		t.Errorf("the right one under another name was not taken: %q", adopted)
	}
	unchanged()
}

func TestAdoptionFromTheHubCacheFollowsItsLinks(t *testing.T) {
	lock := lockOf(t, sample)
	cache := t.TempDir()
	model := filepath.Join(cache, "models--org--name")
	snapshot := filepath.Join(model, "snapshots", string(lock.Revision))
	must(t, os.MkdirAll(snapshot, 0o755))
	must(t, os.MkdirAll(filepath.Join(model, "blobs"), 0o755))
	must(t, os.WriteFile(filepath.Join(model, "blobs", "b1"), []byte(sample["config.json"]), 0o600))
	must(t, os.Symlink("../../blobs/b1", filepath.Join(snapshot, "config.json")))
	must(t, os.Symlink("../../blobs/missing", filepath.Join(snapshot, "dangling")))
	folders := Sources("org/name", t.TempDir(), func(name string) string {
		if name == "HF_HUB_CACHE" {
			return cache
		}
		return ""
	})
	found, _ := Find(context.Background(), lock, folders)
	adopted, _, err := AdoptAll(context.Background(), openHome(t), lock, found)
	if err != nil || len(adopted) != 1 || adopted[0] != "config.json" {
		t.Fatalf("%q %v", adopted, err)
	}
}

func TestFolderThatIsBeingFilledIsLeftAlone(t *testing.T) {
	lock := lockOf(t, sample)
	dir, _ := foreignFolder(t, map[string]string{"config.json": sample["config.json"], ".mtplx-transfer.json": "{}"})
	found, busy := Find(context.Background(), lock, []string{dir})
	if len(found) != 0 || len(busy) != 1 {
		t.Errorf("found %v, busy %q", found, busy)
	}
	var pull *PullInProgressError
	if err := Refer(context.Background(), openHome(t), lock, dir, nil); !errors.As(err, &pull) {
		t.Errorf("got %v", err)
	}
}

func TestModelUsedInPlaceIsCheckedAtEveryLaunch(t *testing.T) {
	lock := lockOf(t, sample)
	dir, unchanged := foreignFolder(t, sample)
	home := openHome(t)
	must(t, Refer(context.Background(), home, lock, dir, nil))
	unchanged()
	if folder, err := Referred(home, lock); err != nil || folder != dir {
		t.Fatalf("%q %v", folder, err)
	}
	must(t, os.Truncate(filepath.Join(dir, "config.json"), 2))
	var moved *MovedError
	if _, err := Referred(home, lock); !errors.As(err, &moved) {
		t.Fatalf("a cut file is launched: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"a":3}`), 0o640))
	var wrong *IntegrityError
	if err := Refer(context.Background(), home, lock, dir, nil); !errors.As(err, &wrong) {
		t.Fatalf("wrong bytes are used in place: %v", err)
	}
}
