package main

import (
	"context"
	"fmt"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/metal"
	"slipway/metal/mtl"
	"slipway/metal/selftest"
)

// openDevice makes the device that --device names. Notes are what its user should know of it.
func openDevice(name string) (d device.Device, notes []string, err error) {
	if name == "metal" {
		return openMetal(metal.Options{})
	}
	return cpu.New(0), nil, nil
}

// openMetal opens the GPU and tests every kernel against the CPU before a weight is loaded: fast kernels that this machine gets wrong
// give way to plain ones, each with a note, and a GPU that stays wrong is refused.
func openMetal(opt metal.Options) (device.Device, []string, error) {
	gpu, err := metal.New(opt)
	if err != nil {
		return nil, nil, fmt.Errorf("Metal cannot be used: %w; --device cpu works without", err)
	}
	reference := cpu.New(0)
	defer reference.Close()
	report, err := selftest.Run(context.Background(), gpu, reference, selftest.Operations())
	if err == nil && !report.Passed {
		err = wrongResult(report)
	}
	if err != nil {
		gpu.Close()
		return nil, nil, err
	}
	return gpu, gpu.Degraded(), nil
}

// wrongResult names the first operation that stayed wrong.
func wrongResult(report selftest.Report) error {
	for _, r := range report.Results {
		if r.Failure != "" {
			return fmt.Errorf("the self-test of Metal failed in %s: %s. Answers would be wrong, so this GPU is refused; --device cpu works", r.Operation, r.Failure)
		}
	}
	return nil
}

// metalHere tells why this machine has no Metal; nil where it may have.
func metalHere() error {
	_, err := mtl.System()
	return err
}
