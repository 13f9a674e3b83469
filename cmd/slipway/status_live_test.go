package main

import (
	"strings"
	"testing"

	"slipway/installer/launch"
	"slipway/wire"
)

func TestStatusNamesTheKVFormat(t *testing.T) {
	l := &launch.Live{Memory: &wire.Memory{Loaded: true, ContextBytes: 1 << 30}}
	l.Server.KVFormat = "q8"
	if said := strings.Join(memoryLines(l), "\n"); !strings.Contains(said, "KV in q8 and states") {
		t.Errorf("%s", said)
	}
}
