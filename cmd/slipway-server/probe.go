package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/urfave/cli/v2"

	"slipway/engine/host"
	"slipway/metal"
	"slipway/metal/mtl"
)

// probe is what set-up may rely on: facts of the device, and the settings that serve honours.
type probe struct {
	SchemaVersion int      `json:"schema_version"`
	Version       string   `json:"version"`
	OS            string   `json:"os"`
	Arch          string   `json:"arch"`
	Cores         int      `json:"cores"`
	Device        string   `json:"device"`  // what --device auto takes, where its self-test passes
	Devices       []string `json:"devices"` // what --device takes
	GPU           *facts   `json:"gpu"`     // null where Metal cannot be opened
	// NoMetal says why; empty where it can.
	NoMetal string `json:"no_metal,omitempty"`

	// Limits that a device sets by itself; null where it sets none, as the CPU does.
	RecommendedMaxWorkingSet *int64 `json:"recommended_max_working_set"` // bytes
	MaxBufferLength          *int64 `json:"max_buffer_length"`           // bytes

	Capabilities capabilities `json:"capabilities"`
}

// facts are what Metal says of the default device.
type facts struct {
	Name            string `json:"name"`
	AppleFamily     int    `json:"apple_family"` // 7 is M1
	Metal3          bool   `json:"metal3"`
	Metal4          bool   `json:"metal4"`
	UnifiedMemory   bool   `json:"unified_memory"`
	ResidencySets   bool   `json:"residency_sets"` // macOS 15
	WorkingSetBytes int64  `json:"recommended_max_working_set"`
	MaxBufferBytes  int64  `json:"max_buffer_length"`
}

func factsOf(f mtl.Facts) *facts {
	return &facts{f.Name, f.AppleFamily, f.Metal3, f.Metal4, f.UnifiedMemory, f.ResidencySets, f.WorkingSetBytes, f.MaxBufferBytes}
}

type capabilities struct {
	KVFormats       []string            `json:"kv_formats"`    // of all devices
	KVFormatsOf     map[string][]string `json:"kv_formats_of"` // by device, the exact one first
	Operands        []string            `json:"operands"`      // of prefill on metal, the exact one first; none without it
	PrefillPolicies []string            `json:"prefill_policies"`
	Drafts          []string            `json:"drafts"`
	Devices         []string            `json:"devices"`
}

func probeVerb(out io.Writer) *cli.Command {
	return &cli.Command{
		Name:  "probe",
		Usage: "print the device's facts and what serve can honour, as JSON",
		Action: func(*cli.Context) error {
			e := json.NewEncoder(out)
			e.SetIndent("", "  ")
			return e.Encode(probeMachine())
		},
	}
}

func probeMachine() probe {
	p := probe{SchemaVersion: 1, Version: version, OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Device: "cpu", Devices: []string{"cpu"}}
	p.GPU, p.NoMetal = askMetal()
	operands := []string{}
	if p.GPU != nil {
		p.Devices = append(p.Devices, "metal")
		operands = accelerator.OperandFormats()
		p.RecommendedMaxWorkingSet, p.MaxBufferLength = &p.GPU.WorkingSetBytes, &p.GPU.MaxBufferBytes
		if accelerator.Preferred() {
			p.Device = "metal"
		}
	}
	p.Capabilities = capabilities{KVFormatsOf: map[string][]string{}, Operands: operands, PrefillPolicies: []string{"exact"}, Drafts: []string{"none"}, Devices: p.Devices}
	formats := host.KVFormats(accelerator)
	for _, device := range p.Devices {
		p.Capabilities.KVFormats = append(p.Capabilities.KVFormats, formats[device]...)
		p.Capabilities.KVFormatsOf[device] = formats[device]
	}
	return p
}

// askMetal asks the default GPU for its facts; where there is none that the kernels are written for, the sentence says why.
func askMetal() (*facts, string) {
	opt, err := accelerator.Options()
	if err != nil {
		return nil, err.Error()
	}
	asked, err := metal.Ask(opt.Libraries)
	if err != nil {
		return nil, fmt.Sprintf("Metal cannot be used: %v", err)
	}
	return factsOf(asked), ""
}
