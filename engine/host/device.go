package host

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/engine/device/cpu/kernels"
	"slipway/units"
)

// opened is a device, with what its user should know of it.
type opened struct {
	device device.Device
	gpu    device.GPU // the same; nil on the CPU
	read   *reading   // of the weights, for the GPU
	notes  []string
}

// checkDevice refuses a device that is not here.
func (s Settings) checkDevice() error {
	switch a := s.Accelerator; {
	case s.Device == "auto" || s.Device == "cpu":
	case a == nil:
		return refuse("--device %s: there are auto and cpu", s.Device)
	case s.Device != a.Name():
		return refuse("--device %s: there are auto, cpu and %s", s.Device, a.Name())
	case a.Missing() != nil:
		return refuse("--device %s: %v; use --device cpu", s.Device, a.Missing())
	}
	return nil
}

// deviceName is the device that will be tried: for auto, the accelerator where it is preferred.
func (s Settings) deviceName() string {
	switch {
	case s.Device != "auto":
		return s.Device
	case s.Accelerator != nil && s.Accelerator.Preferred():
		return s.Accelerator.Name()
	}
	return "cpu"
}

// openDevice opens the device of the settings for these weights, a GPU with operands in bf16 or f16. With auto, what is
// small enough for the CPU is answered there where the GPU is refused.
func (s Settings) openDevice(weights [][]byte, bf16 bool) (opened, error) {
	if err := kernels.EnvError(); err != nil {
		return opened{}, refuse("%s: %v", kernels.EnvISA, err)
	}
	if s.deviceName() == "cpu" {
		return opened{device: cpu.New(0)}, nil
	}
	read := &reading{log: s.Log, total: total(weights)}
	gpu, err := s.Accelerator.Open(device.AcceleratorOptions{Weights: weights, BF16: bf16, Copied: read.more})
	if err == nil {
		return opened{gpu, gpu, read, gpu.Degraded()}, nil
	}
	if bytes := total(weights); s.Device != "auto" || bytes > mostOnCPU {
		return opened{}, fmt.Errorf("%w. %s", err, onCPU(bytes))
	}
	return opened{device: cpu.New(0), notes: []string{err.Error() + ". The CPU answers instead, which is slow"}}, nil
}

func total(weights [][]byte) (n int64) {
	for _, w := range weights {
		n += int64(len(w))
	}
	return n
}

// mostOnCPU is the largest model that auto gives to the CPU: one of 4B in 4 bit. Larger ones would take seconds for a
// word.
const mostOnCPU = 4 << 30

// cpuReads is how many bytes of weights a core reads a second while it multiplies: 0.65 to 0.90 GB/s were measured for
// plain Go, 4 bit.
const cpuReads = 0.8e9

// onCPU says what the CPU would mean for weights of so many bytes.
func onCPU(bytes int64) string {
	seconds := float64(bytes) / (cpuReads * float64(runtime.NumCPU()))
	if bytes <= mostOnCPU {
		return "--device cpu works without Metal, more slowly"
	}
	return fmt.Sprintf("--device cpu works without Metal, but reads all %s of the weights for every token: "+
		"%.0f s a token on the %d cores of this machine, by estimate, and hours for a long prompt. A smaller model "+
		"is the better choice",
		units.Short(bytes), max(seconds, 1), runtime.NumCPU())
}

// ready brings those weights into memory that were not copied, before the first pass needs them, and asks that they
// stay.
func (o opened) ready(log *slog.Logger) error {
	if o.gpu == nil {
		return nil
	}
	r, err := o.gpu.Ready(context.Background(), o.read.ahead)
	if err != nil {
		return err
	}
	if r.Refused != nil {
		log.Warn("the weights may leave the GPU's reach when memory is short", "error", r.Refused.Error())
	}
	log.Info("weights on the GPU", "in_place_bytes", r.InPlaceBytes, "copied_bytes", r.CopiedBytes, "resident",
		r.Resident,
		"held_bytes", r.HeldBytes, "working_set_bytes", r.WorkingSetBytes)
	return nil
}
