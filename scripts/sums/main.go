// Command sums keeps SHA256SUMS.txt: one line a shipped file, in the form that `sha256sum -c` reads.
//
// A file is shipped when git tracks it and it is neither a test nor a test's data nor CI: what a person needs to
// build and run slipway. Without -write it only checks.
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"slipway/scripts/kept"
)

const sumsFile = "SHA256SUMS.txt"

var file = kept.File{Name: sumsFile, Compute: compute}

func main() { kept.Main(file) }

// compute returns the contents that SHA256SUMS.txt should have: lines of 64 hex digits, two spaces and a
// slash-separated path, sorted by path.
func compute(root string) ([]byte, error) {
	files, err := shipped(root)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(data), name)
	}
	return out.Bytes(), nil
}

// shipped lists the shipped files, sorted.
func shipped(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w; the list of shipped files is read from a git checkout", err)
	}
	var files []string
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if isShipped(name) {
			files = append(files, name)
		}
	}
	sort.Strings(files)
	return files, nil
}

func isShipped(name string) bool {
	switch {
	case name == sumsFile, strings.HasSuffix(name, "_test.go"), strings.HasPrefix(name, ".ci/"),
		strings.HasPrefix(name, "test/"):
		return false
	}
	return !strings.Contains("/"+name, "/testdata/")
}
