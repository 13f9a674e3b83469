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
	"slipway/profiles"
	"slipway/wire"
)

func factsOf(f mtl.Facts) *wire.GPUFacts {
	return &wire.GPUFacts{Name: f.Name, AppleFamily: f.AppleFamily, Metal3: f.Metal3, Metal4: f.Metal4,
		UnifiedMemory: f.UnifiedMemory,
		ResidencySets: f.ResidencySets, WorkingSetBytes: f.WorkingSetBytes, MaxBufferBytes: f.MaxBufferBytes}
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

func probeMachine() wire.Probe {
	p := wire.Probe{SchemaVersion: 1, Version: version, OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(),
		Device: "cpu", Devices: []string{"cpu"}}
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
	p.Capabilities = wire.Capabilities{KVFormatsOf: map[string][]string{}, Operands: operands,
		PrefillPolicies: []string{"exact"}, Drafts: profiles.DraftNames(), Devices: p.Devices}
	formats := host.KVFormats(accelerator)
	for _, device := range p.Devices {
		p.Capabilities.KVFormats = append(p.Capabilities.KVFormats, formats[device]...)
		p.Capabilities.KVFormatsOf[device] = formats[device]
	}
	return p
}

// askMetal asks the default GPU for its facts; where there is none that the kernels are written for, the sentence says
// why.
func askMetal() (*wire.GPUFacts, string) {
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
