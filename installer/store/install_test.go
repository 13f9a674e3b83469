package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifests"
)

const testRevision = manifests.Revision("0123456789abcdef0123456789abcdef01234567")

// lockOf is a lock of the given contents by path.
func lockOf(t testing.TB, contents map[string]string) manifests.Lock {
	t.Helper()
	lock := manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: "org/name", Revision: testRevision,
		Source: "test"}
	for name, data := range contents {
		lock.Files = append(lock.Files, manifests.File{Path: name, Size: int64(len(data)),
			SHA256: manifests.DigestOf(sha256.Sum256([]byte(data))), Proof: manifests.Proven})
	}
	data, err := lock.Marshal() // sorts a copy
	if err != nil {
		t.Fatal(err)
	}
	lock, err = manifests.ParseLock(data)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func openHome(t testing.TB) *os.Root {
	t.Helper()
	home, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	return home
}

func installAll(t testing.TB, home *os.Root, lock manifests.Lock, contents map[string]string) {
	t.Helper()
	for name, data := range contents {
		if err := Install(context.Background(), home, lock, name, strings.NewReader(data)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

var sample = map[string]string{
	"config.json":          `{"a":1}`,
	"empty":                "",
	"sub folder/вес й.bin": strings.Repeat("weights ", 100_000),
}

func TestInstallThenVerifyFastAndDeep(t *testing.T) {
	home, lock := openHome(t), lockOf(t, sample)
	installAll(t, home, lock, sample)
	for _, deep := range []bool{false, true} {
		report, err := Verify(context.Background(), home, lock, deep)
		if err != nil || !report.OK() || len(report.Extra) != 0 {
			t.Fatalf("deep %v: %+v, %v", deep, report, err)
		}
	}
	info, err := home.Stat(filePath(lock, "config.json"))
	if err != nil || info.Mode().Perm() != 0o444 {
		t.Fatalf("mode %v, %v: an installed weight must be read-only", info.Mode(), err)
	}
	if _, err := LoadLock(home, lock.Repo, lock.Revision); err != nil {
		t.Fatalf("the lock beside the model: %v", err)
	}
	entries, _ := fs.ReadDir(home.FS(), partialDir)
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".lock" {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestInstallRefusesWrongBytes(t *testing.T) {
	lock := lockOf(t, sample)
	for name, bytes := range map[string]string{
		"one byte differs": `{"a":2}`, "one byte short": `{"a":1`, "one byte long": `{"a":1}}`, "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			home := openHome(t)
			err := Install(context.Background(), home, lock, "config.json", strings.NewReader(bytes))
			var integrity *IntegrityError
			if !errors.As(err, &integrity) || integrity.Path != "config.json" {
				t.Fatalf("got %v, want an IntegrityError that names config.json", err)
			}
			if _, err := home.Lstat(filePath(lock, "config.json")); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("a final name has wrong bytes: %v", err)
			}
		})
	}
}

func TestVerifyNamesEachKindOfDamage(t *testing.T) {
	damage := map[string]struct {
		do         func(t *testing.T, dir string)
		fast, deep FileState
	}{
		"removed": {func(t *testing.T, f string) { must(t, os.Remove(f)) }, Missing, Missing},
		"flipped byte, same size": {func(t *testing.T, f string) {
			must(t, os.Chmod(f, 0o644))
			must(t, os.WriteFile(f, []byte(`{"a":9}`), 0o644))
		}, Changed, WrongHash},
		"rewritten with the same bytes": {func(t *testing.T, f string) {
			must(t, os.Remove(f))
			must(t, os.WriteFile(f, []byte(`{"a":1}`), 0o644))
		}, Changed, OK},
		"truncated": {func(t *testing.T, f string) { must(t, os.Chmod(f, 0o644)); must(t, os.Truncate(f, 3)) },
			WrongSize, WrongSize},
		"dangling symlink": {func(t *testing.T, f string) {
			must(t, os.Remove(f))
			must(t,
				os.Symlink("../nowhere", f))
		}, BrokenLink, BrokenLink},
		"link out of the home": {func(t *testing.T, f string) {
			must(t, os.Remove(f))
			must(t,
				os.Symlink("/etc/hostname", f))
		}, BrokenLink, BrokenLink},
		"a folder in its place": {func(t *testing.T, f string) { must(t, os.Remove(f)); must(t, os.Mkdir(f, 0o755)) },
			NotAFile, NotAFile},
	}
	for name, row := range damage {
		t.Run(name, func(t *testing.T) {
			home, lock := openHome(t), lockOf(t, sample)
			installAll(t, home, lock, sample)
			row.do(t, filepath.Join(home.Name(), filePath(lock, "config.json")))
			for deep, want := range map[bool]FileState{false: row.fast, true: row.deep} {
				report, err := Verify(context.Background(), home, lock, deep)
				must(t, err)
				for _, f := range report.Files {
					expected := OK
					if f.Path == "config.json" {
						expected = want
					}
					if f.State != expected {
						t.Errorf("deep %v: %s is %q, want %q", deep, f.Path, f.State, expected)
					}
				}
			}
			if row.deep == NotAFile {
				return
			}
			must(t, Install(context.Background(), home, lock, "config.json", strings.NewReader(sample["config.json"])))
			report, err := Verify(context.Background(), home, lock, true)
			if err != nil || !report.OK() {
				t.Errorf("installing again did not repair it: %+v %v", report.Bad(), err)
			}
		})
	}
}

func TestVerifyNamesForeignFilesAndTouchesNone(t *testing.T) {
	home, lock := openHome(t), lockOf(t, sample)
	installAll(t, home, lock, sample)
	must(t, home.WriteFile(ModelDir(lock.Repo, lock.Revision)+"/notes.txt", []byte("mine"), 0o600))
	report, err := Verify(context.Background(), home, lock, true)
	must(t, err)
	if !report.OK() || len(report.Extra) != 1 || report.Extra[0] != "notes.txt" {
		t.Fatalf("%+v", report)
	}
}

func TestTornRecordCostsOneHashNeverAWrongAnswer(t *testing.T) {
	home, lock := openHome(t), lockOf(t, sample)
	installAll(t, home, lock, sample)
	record := filepath.Join(home.Name(), installedPath(lock.Repo, lock.Revision))
	data, err := os.ReadFile(record)
	must(t, err)
	must(t, os.WriteFile(record, data[:len(data)-9], 0o644))
	report, err := Verify(context.Background(), home, lock, false)
	must(t, err)
	if bad := report.Bad(); len(bad) != 1 || bad[0].State != Unrecorded {
		t.Fatalf("%+v", bad)
	}
	deep, err := Verify(context.Background(), home, lock, true)
	must(t, err)
	must(t, Remember(home, lock, deep))
	if report, err = Verify(context.Background(), home, lock, false); err != nil || !report.OK() {
		t.Fatalf("after remembering: %+v %v", report.Bad(), err)
	}
}

func TestTwoOwnersOfOnePartial(t *testing.T) {
	file := lockOf(t, sample).Files[0]
	t.Run("the second is told who holds it", func(t *testing.T) {
		home := openHome(t)
		first, err := OpenPartial(home, file)
		must(t, err)
		defer first.Close()
		_, err = OpenPartial(home, file)
		var busy *BusyError
		if !errors.As(err, &busy) || !strings.HasPrefix(busy.Holder, "pid ") {
			t.Fatalf("got %v", err)
		}
	})
	for name, broken := range map[string]func(*os.File) error{
		"locks that always succeed": func(*os.File) error { return nil },
		"locks not supported":       func(*os.File) error { return errors.ErrUnsupported },
	} {
		t.Run(name, func(t *testing.T) {
			kept := flock
			flock = broken
			defer func() { flock = kept }()
			home, lock := openHome(t), lockOf(t, sample)
			first, err := OpenPartial(home, file)
			must(t, err)
			defer first.Close()
			second, err := OpenPartial(home, file)
			must(t, err)
			defer second.Close()
			first.WriteAt([]byte("garbage"), 0)
			data := []byte(sample[file.Path])
			must(t, second.Reserve())
			second.WriteAt(data, 0)
			must(t, second.Commit(lock, file.Path, manifests.DigestOf(sha256.Sum256(data))))
			first.WriteAt([]byte("garbage"), 0) // an owner that continues after the other has finished
			if report, err := Verify(context.Background(), home, lock, true); err != nil ||
				report.Files[0].State != OK {
				t.Fatalf("%+v %v: one owner wrote into the other's finished file", report.Files[0], err)
			}
		})
	}
}

func TestLinkPlantedInTheHomeLeadsNowhere(t *testing.T) {
	outside := t.TempDir()
	for name, at := range map[string]string{"models": ModelsDir, "the model's folder": RepoDir("org/name"),
		"partials": partialDir} {
		t.Run(name, func(t *testing.T) {
			home, lock := openHome(t), lockOf(t, sample)
			must(t, home.MkdirAll(filepath.Dir(at), 0o755))
			must(t, os.Symlink(outside, filepath.Join(home.Name(), at)))
			if err := Install(context.Background(), home, lock, "config.json",
				strings.NewReader(sample["config.json"])); err == nil {
				t.Error("installed through a link that leads out of the home")
			}
			if entries, _ := os.ReadDir(outside); len(entries) != 0 {
				t.Errorf("written outside: %v", entries)
			}
		})
	}
}

func TestSecondLockOfOneRevisionMustAgree(t *testing.T) {
	home, lock := openHome(t), lockOf(t, sample)
	must(t, SaveLock(home, lock))
	must(t, SaveLock(home, lock))
	other := lockOf(t, map[string]string{"config.json": `{"a":7}`})
	var conflict *LockConflictError
	if err := SaveLock(home, other); !errors.As(err, &conflict) || conflict.Path != "config.json" {
		t.Fatalf("got %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
