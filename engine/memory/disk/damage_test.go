package disk

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryFlippedByteAndEveryTornEndIsDetected(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "c"), options())
	ids := someIDs(3, testPage+5)
	save(t, s, ids)
	pages, whole := chain(key, ids, testPage)
	for _, path := range []string{s.path("points", whole), s.path("pages", pages[0])} {
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, at int, bad []byte) {
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			var damage *DamageError
			if err := load(s, ids); !errors.As(err, &damage) {
				t.Fatalf("%s at byte %d of %d: %v", what, at, len(good), err)
			}
		}
		for at := range good {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			check("flipped", at, bad)
			check("torn", at, good[:at])
		}
		check("longer", len(good), append(bytes.Clone(good), 0))
		os.WriteFile(path, good, 0o600)
		if err := load(s, ids); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedPointsAreDroppedAndCountedWhenTheFolderIsOpened(t *testing.T) {
	for name, harm := range map[string]func(*testing.T, string){
		"torn": func(t *testing.T, path string) { os.Truncate(path, 100) },
		"header flipped": func(t *testing.T, path string) {
			data, _ := os.ReadFile(path)
			data[40] ^= 1
			os.WriteFile(path, data, 0o600)
		},
		"under another name": func(t *testing.T, path string) {
			os.Rename(path, filepath.Join(filepath.Dir(path), strings.Repeat("ab", 32)))
		},
		"page missing": func(t *testing.T, path string) {
			pages, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "../pages/*"))
			os.Remove(pages[0])
		},
		"page torn": func(t *testing.T, path string) {
			pages, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "../pages/*"))
			os.Truncate(pages[0], 9)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(filepath.Join(t.TempDir(), "c"), options())
			if err != nil {
				t.Fatal(err)
			}
			ids := someIDs(3, testPage+5)
			save(t, s, ids)
			_, whole := chain(key, ids, testPage)
			path := s.path("points", whole)
			harm(t, path)
			s = reopen(t, s)
			defer finish(s)
			if len(s.Found()) != 0 || s.Stats().Damaged == 0 {
				t.Errorf("%d points found, %d damaged", len(s.Found()), s.Stats().Damaged)
			}
			if left, _ := filepath.Glob(filepath.Join(s.dir, "p*", "*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A folder that was written with 16-bit keys and values and is opened for 8-bit ones is not torn: nothing of it serves,
// which is said once, and nothing is counted as damage.
func TestFolderOfAnotherKVFormatIsNotDamage(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "c"), options())
	if err != nil {
		t.Fatal(err)
	}
	save(t, s, someIDs(3, 2*testPage+5))
	save(t, s, someIDs(4, testPage))
	finish(s)
	var log bytes.Buffer
	opt := s.opt
	wide := opt.Positions
	opt.Positions = func(tokens int) int64 { return wide(tokens) / 2 }
	opt.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err = Open(s.dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer finish(s)
	if len(s.Found()) != 0 || s.Stats().Damaged != 0 || strings.Count(log.String(), "another size") != 1 ||
		!strings.Contains(log.String(), "points=2") ||
		!strings.Contains(log.String(), "KV in "+key.KVFormat) {
		t.Errorf("%d points found, %d damaged: %s", len(s.Found()), s.Stats().Damaged, log.String())
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "p*", "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
