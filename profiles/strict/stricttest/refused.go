// Package stricttest holds parsers of strict files against files that they must refuse.
package stricttest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/profiles/strict"
)

// Refused parses each of testdata/bad/*.toml, of which there must be at least so many. Each carries "# want: MESSAGE"
// on its bad line: the *strict.Error must name that line and hold that message.
func Refused(t *testing.T, atLeast int, parse func(file string, data []byte) error) {
	t.Helper()
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil || len(files) < atLeast {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			line, want := 0, ""
			for i, text := range strings.Split(string(data), "\n") {
				if _, message, ok := strings.Cut(text, "# want: "); ok {
					line, want = i+1, message
				}
			}
			var fault *strict.Error
			if err := parse(file, data); !errors.As(err, &fault) {
				t.Fatalf("accepted, or not a strict.Error: %v", err)
			}
			if fault.File != file || fault.Line != line || !strings.Contains(fault.Why, want) {
				t.Errorf("got %s:%d %q\nwant line %d with %q", fault.File, fault.Line, fault.Why, line, want)
			}
		})
	}
}
