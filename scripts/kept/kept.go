// Package kept keeps a generated file of the repository current: written with -write, else checked.
package kept

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// File is a generated file.
type File struct {
	Name    string                            // below the repository's root
	Compute func(root string) ([]byte, error) // what it should hold
}

// Main is the main function of a command that keeps one file; it is run in the repository's root.
func Main(f File) {
	write := flag.Bool("write", false, "renew "+f.Name+" instead of checking it")
	flag.Parse()
	do := f.Check
	if *write {
		do = f.Write
	}
	if err := do("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Write renews the file.
func (f File) Write(root string) error {
	now, err := f.Compute(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, f.Name), now, 0o644)
}

// Check says where the file is not what it should be.
func (f File) Check(root string) error {
	now, err := f.Compute(root)
	if err != nil {
		return err
	}
	then, err := os.ReadFile(filepath.Join(root, f.Name))
	if err != nil {
		return err
	}
	if line := firstDifference(then, now); line != "" {
		return fmt.Errorf("%s is not current, first at %q; run `make generate` and commit it", f.Name, line)
	}
	return nil
}

// firstDifference gives the first line of now that then does not have at its place; "its end" when only then continues;
// nothing when both are the same.
func firstDifference(then, now []byte) string {
	if bytes.Equal(then, now) {
		return ""
	}
	a, b := bytes.Split(then, []byte("\n")), bytes.Split(now, []byte("\n"))
	for i := range b {
		if len(b[i]) > 0 && (i >= len(a) || !bytes.Equal(a[i], b[i])) {
			return string(b[i])
		}
	}
	return "its end"
}
