package record

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Wilson's interval, against values of its own paper's formula worked by hand.
func TestWilsonInterval(t *testing.T) {
	for _, row := range []struct {
		hits, of  int
		low, high float64
	}{{0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {8, 10, 0.4902, 0.9433}, {190, 200, 0.9104, 0.9726}, {0, 0, 0, 1}} {
		if low, high := Wilson(row.hits, row.of); math.Abs(low-row.low) > 0.0005 || math.Abs(high-row.high) > 0.0005 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", row.hits, row.of, low, high, row.low, row.high)
		}
	}
}

func open(t *testing.T, dir string, setup Setup, restart bool) (*Book, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return Open(root, "run", setup, restart, time.Unix(0, 0))
}

// A run that broke in the middle of a line continues after the last whole one.
func TestTornLastLineIsRemoved(t *testing.T) {
	dir := t.TempDir()
	b, err := open(t, dir, Setup{Check: "c"}, false)
	if err != nil || b.Add(Answer{Task: "1"}) != nil || b.Close() != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "run.partial.jsonl")
	whole, err := os.ReadFile(file)
	if err != nil || os.WriteFile(file, append(whole, `{"task":"2","ans`...), 0o600) != nil {
		t.Fatal(err)
	}
	if b, err = open(t, dir, Setup{Check: "c"}, false); err != nil || b.Done() != 1 || b.Add(Answer{Task: "2"}) != nil {
		t.Fatalf("%v, %d done", err, b.Done())
	}
	base, err := b.Finish(time.Unix(0, 0), map[string][]byte{".json": []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if _, answers, err := Read(filepath.Join(dir, base+".jsonl")); err != nil || len(answers) != 2 {
		t.Fatalf("%v, %v", answers, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("the unfinished file is still there")
	}
}

// Another setup, or a file of something else, must not be mixed in.
func TestDifferentSetupIsRefusedAndNamed(t *testing.T) {
	dir := t.TempDir()
	if _, err := open(t, dir, Setup{Check: "c", Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, dir, Setup{Check: "c", Seed: 2, Options: map[string]string{"a": "b"}}, false)
	var other *OtherSetupError
	if !errors.As(err, &other) || !strings.Contains(err.Error(), "seed 1 there, 2 here") || len(other.Differ) != 2 {
		t.Fatal(err)
	}
	if b, err := open(t, dir, Setup{Check: "c", Seed: 2}, true); err != nil || b.Done() != 0 {
		t.Fatal(err)
	}
	if aside, err := filepath.Glob(filepath.Join(dir, "run-*.abandoned.jsonl")); err != nil || len(aside) != 1 {
		t.Fatalf("%v %v", aside, err)
	}
	if _, _, err := Read(filepath.Join(dir, "run.partial.jsonl")); err == nil {
		t.Fatal("an unfinished run is read as a finished one")
	}
	if err := os.WriteFile(filepath.Join(dir, "run.partial.jsonl"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := open(t, dir, Setup{Check: "c"}, false); !errors.As(err, &damaged) {
		t.Fatal(err)
	}
}
