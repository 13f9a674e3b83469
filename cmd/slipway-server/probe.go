package main

import (
	"encoding/json"
	"io"
	"runtime"

	"github.com/urfave/cli/v2"
)

// probe is what set-up may rely on: facts of the device, and the settings that serve honours.
type probe struct {
	SchemaVersion int      `json:"schema_version"`
	Version       string   `json:"version"`
	OS            string   `json:"os"`
	Arch          string   `json:"arch"`
	Device        string   `json:"device"`  // what --device auto takes
	Devices       []string `json:"devices"` // what --device takes

	// Limits that a device sets by itself; null where it sets none, as the CPU does.
	RecommendedMaxWorkingSet *int64 `json:"recommended_max_working_set"` // bytes
	MaxBufferLength          *int64 `json:"max_buffer_length"`           // bytes

	Capabilities capabilities `json:"capabilities"`
}

type capabilities struct {
	KVFormats       []string `json:"kv_formats"`
	PrefillPolicies []string `json:"prefill_policies"`
	Drafts          []string `json:"drafts"`
	Devices         []string `json:"devices"`
}

func probeVerb(out io.Writer) *cli.Command {
	return &cli.Command{
		Name:  "probe",
		Usage: "print the device's facts and what serve can honour, as JSON",
		Action: func(*cli.Context) error {
			e := json.NewEncoder(out)
			e.SetIndent("", "  ")
			return e.Encode(probe{
				SchemaVersion: 1, Version: version, OS: runtime.GOOS, Arch: runtime.GOARCH, Device: "cpu", Devices: []string{"cpu"},
				Capabilities: capabilities{KVFormats: []string{"f32"}, PrefillPolicies: []string{"exact"}, Drafts: []string{"none"}, Devices: []string{"cpu"}},
			})
		},
	}
}
