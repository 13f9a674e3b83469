package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server that runs for months with nobody watching must not fill the disk with its log.
func TestLogOfADetachedServerStaysBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "server.log")
	writer, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, text := range []string{strings.Repeat("a", 101), strings.Repeat("b", 102)} {
		writer.WriteString(text)
		if err := cutLog(writer, name, 100); err != nil {
			t.Fatal(err)
		}
		writer.WriteString("next") // by the file that was open all the time
		if read(name) != "next" || !strings.HasSuffix(read(name+".1"), text) {
			t.Fatalf("%q %q", read(name), read(name+".1"))
		}
	}
	if err := cutLog(writer, name, 100); err != nil || read(name) != "next" {
		t.Fatalf("a short log was cut: %v %q", err, read(name))
	}
	// A name that leads to another file is left alone, whatever the log's size.
	other := filepath.Join(filepath.Dir(name), "other")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	writer.WriteString(strings.Repeat("c", 200))
	if err := cutLog(writer, other, 100); err != nil || read(other) != "mine" || len(read(name)) != 204 {
		t.Fatalf("%v %q %d", err, read(other), len(read(name)))
	}
	// A link planted at the copy's name is replaced, not followed.
	os.Remove(name + ".1")
	if err := os.Symlink(other, name+".1"); err != nil {
		t.Fatal(err)
	}
	if err := cutLog(writer, name, 100); err != nil || read(other) != "mine" || len(read(name+".1")) != 204 {
		t.Fatalf("%v %q", err, read(other))
	}
}
