package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A key file that was saved with a mark of byte order and other ends of lines is the same key.
func TestKeyFileOfAWindowsEditorIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("\ufeffsk-key\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := (&session{ctx: t.Context()}).keyNamed("", file); err != nil || key != "sk-key" {
		t.Errorf("%q, %v", key, err)
	}
}
