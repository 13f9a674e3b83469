package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/metal"
	"slipway/metal/mtl"
	"slipway/metal/selftest"
)

// metalOptions say where Metal is, or why it is not here. A build with the tag fakemetal puts the fake in its place.
var metalOptions = func() (metal.Options, error) {
	libraries, err := mtl.System()
	return metal.Options{Libraries: libraries}, err
}

// metalByItself tells whether --device auto tries Metal on this machine.
var metalByItself = runtime.GOOS == "darwin" && runtime.GOARCH == "arm64"

// opened is a device, with what its user should know of it.
type opened struct {
	device device.Device
	metal  *metal.Device // the same; nil on the CPU
	read   *reading      // of the weights, for metal
	notes  []string
}

// openDevice makes the device that --device names, for weights of so many bytes, on Metal with operands in bf16 or f16. auto is Metal
// where it passes its self-test; what is small enough for the CPU is answered there where it does not.
func openDevice(name string, weights [][]byte, bf16 bool, log *slog.Logger) (opened, error) {
	if name == "auto" && !metalByItself {
		name = "cpu"
	}
	if name == "cpu" {
		return opened{device: cpu.New(0)}, nil
	}
	opt, err := metalOptions()
	if err != nil {
		return opened{}, err
	}
	read := &reading{log: log, total: total(weights)}
	opt.Mapped, opt.BF16, opt.Copied = weights, bf16, read.more
	gpu, err := openMetal(opt)
	if err == nil {
		return opened{gpu, gpu, read, gpu.Degraded()}, nil
	}
	if bytes := total(weights); name == "metal" || bytes > mostOnCPU {
		return opened{}, fmt.Errorf("%w. %s", err, onCPU(bytes))
	}
	return opened{device: cpu.New(0), notes: []string{err.Error() + ". The CPU answers instead, which is slow"}}, nil
}

// openMetal opens the GPU and tests every kernel against the CPU before a weight is loaded: fast kernels that this machine gets wrong
// give way to plain ones, each with a note, and a GPU that stays wrong is refused.
func openMetal(opt metal.Options) (*metal.Device, error) {
	gpu, report, err := testMetal(context.Background(), opt, selftest.Operations())
	if err != nil {
		return nil, fmt.Errorf("Metal cannot be used: %w", err)
	}
	if failed := report.FirstFailure(); failed != nil {
		gpu.Close()
		return nil, fmt.Errorf("the self-test of Metal failed in %s: %s. Answers would be wrong, so this GPU is refused", failed.Operation, failed.Failure)
	}
	return gpu, nil
}

// testMetal opens the GPU and runs operations. The device is the caller's; after an error there is none.
func testMetal(ctx context.Context, opt metal.Options, operations []selftest.Operation) (*metal.Device, selftest.Report, error) {
	gpu, err := metal.New(opt)
	if err != nil {
		return nil, selftest.Report{}, err
	}
	reference := cpu.New(0)
	defer reference.Close()
	report, err := selftest.Run(ctx, gpu, reference, operations)
	if err != nil {
		gpu.Close()
		return nil, report, err
	}
	return gpu, report, nil
}

func total(weights [][]byte) (n int64) {
	for _, w := range weights {
		n += int64(len(w))
	}
	return n
}

// mostOnCPU is the largest model that auto gives to the CPU: one of 4B in 4 bit. Larger ones would take seconds for a word.
const mostOnCPU = 4 << 30

// cpuReads is how many bytes of weights a core reads a second while it multiplies: 0.65 to 0.90 GB/s were measured for plain
// Go, 4 bit.
const cpuReads = 0.8e9

// onCPU says what the CPU would mean for weights of so many bytes.
func onCPU(bytes int64) string {
	seconds := float64(bytes) / (cpuReads * float64(runtime.NumCPU()))
	if bytes <= mostOnCPU {
		return "--device cpu works without Metal, more slowly"
	}
	return fmt.Sprintf("--device cpu works without Metal, but reads all %.1f GB of the weights for every token: %.0f s a token on the %d cores of this machine, by estimate, and hours for a long prompt. A smaller model is the better choice",
		float64(bytes)/1e9, max(seconds, 1), runtime.NumCPU())
}

// ready brings those weights into memory that were not copied, before the first pass needs them, and asks that they stay.
func (o opened) ready(log *slog.Logger) error {
	if o.metal == nil {
		return nil
	}
	if err := o.metal.Prefault(context.Background(), o.read.ahead); err != nil {
		return err
	}
	resident, err := o.metal.MakeResident()
	if err != nil {
		log.Warn("the weights may leave the GPU's reach when memory is short", "error", err.Error())
	}
	w := o.metal.Weights()
	log.Info("weights on the GPU", "in_place_bytes", w.InPlaceBytes, "copied_bytes", w.CopiedBytes, "resident", resident, "held_bytes", o.metal.HeldBytes(),
		"working_set_bytes", o.metal.Facts().WorkingSetBytes)
	return nil
}

// metalHere tells why this machine has no Metal; nil where it may have.
func metalHere() error {
	_, err := metalOptions()
	return err
}
