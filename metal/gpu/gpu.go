// Package gpu offers Metal as the accelerator of the engine: a GPU is tested against the CPU before a weight is loaded.
package gpu

import (
	"context"
	"fmt"
	"runtime"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/metal"
	"slipway/metal/mtl"
	"slipway/metal/selftest"
	"slipway/wire"
)

// Accelerator is Metal. It implements device.Accelerator.
type Accelerator struct {
	// Options say where Metal is, or why it is not here.
	Options func() (metal.Options, error)
	// Default reports whether it is tried where no device was asked for.
	Default bool
}

// System is the Metal of this machine. On Apple silicon it is tried by default.
func System() Accelerator {
	return Accelerator{func() (metal.Options, error) {
		libraries, err := mtl.System()
		return metal.Options{Libraries: libraries}, err
	}, runtime.GOOS == "darwin" && runtime.GOARCH == "arm64"}
}

func (a Accelerator) Name() string             { return "metal" }
func (a Accelerator) Preferred() bool          { return a.Default }
func (a Accelerator) KVFormats() []string      { return metal.KVFormats() }
func (a Accelerator) OperandFormats() []string { return []string{"f16", "bf16"} }

// Missing is why this machine has no Metal.
func (a Accelerator) Missing() error {
	_, err := a.Options()
	return err
}

// Open opens the GPU and tests each kernel: fast kernels that give wrong results on this machine are replaced by plain
// ones, each with a note, and a GPU whose plain kernels are wrong is refused.
func (a Accelerator) Open(opt device.AcceleratorOptions) (device.GPU, error) {
	options, err := a.Options()
	if err != nil {
		return nil, err
	}
	options.Mapped, options.BF16, options.Copied = opt.Weights, opt.BF16, opt.Copied
	d, report, err := Test(context.Background(), options, selftest.Operations())
	if err != nil {
		//lint:ignore ST1005 Metal is a name
		return nil, fmt.Errorf("Metal cannot be used: %w", err)
	}
	if failed := report.FirstFailure(); failed != nil {
		d.Close()
		return nil, fmt.Errorf("the self-test of Metal failed in %s: %s. Answers would be wrong, so this GPU "+
			"is refused", failed.Operation, failed.Failure)
	}
	return open{d}, nil
}

// Test opens the GPU and runs operations. The device is the caller's; after an error there is none.
func Test(ctx context.Context, opt metal.Options, operations []selftest.Operation) (*metal.Device, wire.KernelReport,
	error) {
	d, err := metal.New(opt)
	if err != nil {
		return nil, wire.KernelReport{}, err
	}
	reference := cpu.New(0)
	defer reference.Close()
	report, err := selftest.Run(ctx, d, reference, operations)
	if err != nil {
		d.Close()
		return nil, report, err
	}
	return d, report, nil
}

// open is the GPU after its self-test.
type open struct{ *metal.Device }

// Ready implements device.GPU.
func (o open) Ready(ctx context.Context, progress func(done, total int64)) (device.Residency, error) {
	if err := o.Prefault(ctx, progress); err != nil {
		return device.Residency{}, err
	}
	resident, err := o.MakeResident()
	w := o.Weights()
	return device.Residency{
		InPlaceBytes: w.InPlaceBytes, CopiedBytes: w.CopiedBytes, HeldBytes: o.HeldBytes(),
		WorkingSetBytes: o.Facts().WorkingSetBytes, Resident: resident, Refused: err,
	}, nil
}
