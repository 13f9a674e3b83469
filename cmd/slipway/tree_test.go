package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Times and pids in receipts.
var masked = regexp.MustCompile(`"(time|pid)": ("[^"]*"|[0-9]+)`)

// maskedTree lists a folder: a line a name with mode and hash. Left out is what differs from run to run by its nature:
// the identities (inode, time, pid) that the store notes beside a model. Receipts are hashed with times and pids
// masked.
func maskedTree(dir string) (string, error) {
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.Dir(dir), path)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			fmt.Fprintf(&out, "%s %s\n", info.Mode(), rel)
			return nil
		}
		if strings.HasSuffix(path, ".installed") || strings.Contains(path, "/models/.partial/") &&
			strings.HasSuffix(path, ".lock") {
			fmt.Fprintf(&out, "%s %s (identities)\n", info.Mode(), rel)
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(path, "/receipts/") {
			data = masked.ReplaceAll(data, []byte(`"$1": masked`))
		}
		fmt.Fprintf(&out, "%s %s %x\n", info.Mode(), rel, sha256.Sum256(data))
		return nil
	})
	return out.String(), err
}
