package main

import (
	"slices"
	"strings"
	"testing"
)

// The program that go run started is gone when it ends: the printed command is go run again, wherever the cache is.
func TestPrintedCommandsOfGoRunCanBePasted(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	goRun := []string{"go", "run", "./cmd/slipway"}
	for argv0, want := range map[string][]string{
		"/tmp/go-build123/b001/exe/slipway":                      goRun,
		"/home/person/.cache/go-build/0a/" + hash + "-d/slipway": goRun,
		"/mnt/cache of mine/0a/" + hash + "-d/slipway":           goRun,
		"/usr/local/bin/slipway":                                 {"/usr/local/bin/slipway"},
		"./slipway":                                              {"./slipway"},
	} {
		if got := invocation(argv0); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", argv0, got, want)
		}
	}
}
