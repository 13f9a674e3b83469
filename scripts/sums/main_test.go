package main

import (
	"path/filepath"
	"testing"
)

func TestShippedFileChangedWithoutRenewingTheSums(t *testing.T) {
	if err := file.Check(filepath.Join("..", "..")); err != nil {
		t.Fatal(err)
	}
}

func TestTestsAndTheirDataAreNotShipped(t *testing.T) {
	for name, want := range map[string]bool{
		"cmd/slipway/main.go": true, "manifests/pocket/model.safetensors": true, "README.md": true,
		"cmd/slipway/main_test.go": false, "engine/model/testdata/oracle.json": false, "test/sdk/go.mod": false,
		sumsFile: false,
	} {
		if isShipped(name) != want {
			t.Errorf("%s: shipped is %v, want %v", name, !want, want)
		}
	}
}
