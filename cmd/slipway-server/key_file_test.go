package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A key file that was saved with a mark of byte order and other ends of lines is read; a mark in the middle is no key.
func TestKeyFileOfAWindowsEditorIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	for text, want := range map[string]bool{"\ufeff0123456789abcdef\r\n": true, "01234567\ufeff89abcdef\r\n": false} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := readKey("--api-key-file", file); (err == nil && key != nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
