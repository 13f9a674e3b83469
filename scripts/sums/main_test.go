package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestShippedFileChangedWithoutRenewingTheSums(t *testing.T) {
	if err := run(filepath.Join("..", ".."), false); err != nil {
		t.Fatal(err)
	}
}

func TestOneChangedByteIsNamed(t *testing.T) {
	root := filepath.Join("..", "..")
	now, err := compute(root)
	if err != nil {
		t.Fatal(err)
	}
	then := []byte(strings.Replace(string(now), "  LICENSE\n", "  LICENSE.old\n", 1))
	if got := firstDifference(then, now); got != "LICENSE" {
		t.Fatalf("the changed file is named %q, want LICENSE", got)
	}
	if _, err := os.Stat(filepath.Join(root, "LICENSE")); err != nil {
		t.Fatal(err)
	}
}

func TestTestsAndTheirDataAreNotShipped(t *testing.T) {
	for name, want := range map[string]bool{
		"cmd/slipway/main.go": true, "manifests/pocket/model.safetensors": true, "README.md": true,
		"cmd/slipway/main_test.go": false, "engine/model/testdata/oracle.json": false, "test/openai/go.mod": false, sumsFile: false,
	} {
		if isShipped(name) != want {
			t.Errorf("%s: shipped is %v, want %v", name, !want, want)
		}
	}
}
