//go:build fakemetal

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/kernels"
	"slipway/metal/mac"
)

// A server for machines without Metal: go build -tags fakemetal. Its GPU is the CPU, so it is slow; host code and
// kernels are those of the product. Set by the environment: SLIPWAY_FAKE_BROKEN names kernel files, with commas
// between, that do not compile; SLIPWAY_FAKE_MEMORY a file that holds a memory pressure, normal, warning or critical.
func init() {
	accelerator.Options = func() (metal.Options, error) {
		libraries, err := fake.Open(fake.Configuration{Seed: 1, Threads: 2})
		return metal.Options{Libraries: libraries, Source: brokenSource}, err
	}
	readMemory = fakeMemory
	systemPower = func() (*mac.Power, error) { return nil, errors.New("the fake does not sleep") }
}

func brokenSource(name string) string {
	text := kernels.Source(name)
	for _, broken := range strings.Split(os.Getenv("SLIPWAY_FAKE_BROKEN"), ",") {
		if broken == name {
			text += "\nthis is no kernel\n"
		}
	}
	return text
}

func fakeMemory() (mac.Memory, error) {
	file := os.Getenv("SLIPWAY_FAKE_MEMORY")
	if file == "" {
		return mac.ReadMemory()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return mac.Memory{}, err
	}
	for _, p := range []mac.Pressure{mac.Normal, mac.Warning, mac.Critical} {
		if strings.TrimSpace(string(text)) == p.String() {
			return mac.Memory{Pressure: p, FreeBytes: 1 << 30, TotalBytes: 16 << 30}, nil
		}
	}
	return mac.Memory{}, fmt.Errorf("%q is no memory pressure", text)
}
