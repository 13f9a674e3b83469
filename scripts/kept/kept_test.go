package kept

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStaleFileIsNamedWithItsLine(t *testing.T) {
	root := t.TempDir()
	holds := "one\ntwo\n"
	f := File{Name: "SUMS", Compute: func(string) ([]byte, error) { return []byte(holds), nil }}
	if err := f.Check(root); !os.IsNotExist(err) {
		t.Fatalf("a missing file: %v", err)
	}
	if err := f.Write(root); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(root); err != nil {
		t.Fatalf("just written: %v", err)
	}
	holds = "one\nthree\n"
	if err := f.Check(root); err == nil || !strings.Contains(err.Error(), `"three"`) {
		t.Fatalf("a changed line: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "SUMS"), []byte("one\nthree\nfour\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(root); err == nil || !strings.Contains(err.Error(), "its end") {
		t.Fatalf("a line too many: %v", err)
	}
}
