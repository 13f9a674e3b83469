package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestClearTakesOnlyOurFilesAndNeverFromARunningServer(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "c"), options())
	if err != nil {
		t.Fatal(err)
	}
	save(t, s, someIDs(1, 40))
	if c, err := Show(s.dir); err != nil || !c.InUse || c.Points != 1 || c.Pages != 2 || c.Newest.IsZero() {
		t.Errorf("%+v, %v", c, err)
	}
	if err := Clear(s.dir); !errors.Is(err, ErrInUse) {
		t.Errorf("cleared under a running server: %v", err)
	}
	finish(s)
	mine := filepath.Join(s.dir, "note.txt")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Clear(s.dir); err != nil {
		t.Fatal(err)
	}
	if c, err := Show(s.dir); err != nil || c.InUse || c.Points+c.Pages != 0 {
		t.Errorf("after clearing %+v, %v", c, err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("a file that is not the cache's: %v", err)
	}
	next, err := Open(s.dir, s.opt)
	if err != nil {
		t.Fatal(err)
	}
	save(t, next, someIDs(2, 40))
	finish(next)
	other := t.TempDir()
	if err := os.Mkdir(filepath.Join(other, "points"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Show(other); !errors.Is(err, ErrNoCache) {
		t.Errorf("somebody's folder: %v", err)
	}
	if err := Clear(other); !errors.Is(err, ErrNoCache) {
		t.Errorf("somebody's folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(other, "points")); err != nil {
		t.Errorf("somebody's folder was touched: %v", err)
	}
}
