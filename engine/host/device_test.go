package host

import (
	"strings"
	"syscall"
	"testing"

	"slipway/metal"
	"slipway/metal/cpurun"
	"slipway/metal/fake"
	"slipway/metal/gpu"
	"slipway/metal/kernels"
)

// with are options of a Metal whose file reads otherwise.
func with(t *testing.T, file, from, to string) metal.Options {
	t.Helper()
	cpurun.Need(t)
	libraries, err := fake.Open(fake.Configuration{Seed: 1, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	return metal.Options{Libraries: libraries, Source: func(name string) string {
		text := kernels.Source(name)
		if name == file {
			text = strings.Replace(text, from, to, 1)
		}
		return text
	}}
}

// fakeGPU is Metal as these options have it; byDefault is a machine where auto tries it.
func fakeGPU(opt *metal.Options, byDefault bool) gpu.Accelerator {
	return gpu.Accelerator{Options: func() (metal.Options, error) { return *opt, nil }, Default: byDefault}
}

// auto runs a small model on the CPU when Metal is refused; for a large one the error says what that would mean.
func TestRefusedMetalFallsBackToTheCPUOrSaysWhatItWouldMean(t *testing.T) {
	opt := with(t, "delta_input", "kernel void", "kernel int")
	onGPU := fakeGPU(&opt, true)
	// no memory: it is never touched
	pages, err := syscall.Mmap(-1, 0, 5<<30, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(pages)
	small, large := [][]byte{make([]byte, 1<<20)}, [][]byte{pages}
	o, err := Settings{Device: "auto", Accelerator: onGPU}.openDevice(small, false)
	if err != nil || o.device.Name() != "cpu" || len(o.notes) != 1 ||
		!strings.Contains(o.notes[0], "kernel delta_input") || !strings.Contains(o.notes[0], "CPU answers instead") {
		t.Errorf("%v, notes %q", err, o.notes)
	}
	for _, c := range []struct {
		name    string
		weights [][]byte
		says    string
	}{{"metal", small, "--device cpu works without Metal, more slowly"},
		{"auto", large, "5.37 GB of the weights for every token"}, {"metal", large, "s a token"}} {
		if _, err := (Settings{Device: c.name, Accelerator: onGPU}).openDevice(c.weights, false); err == nil ||
			!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "kernel delta_input") {
			t.Errorf("--device %s: %v, wanted %q", c.name, err, c.says)
		}
	}
	opt.Source = nil
	o, err = Settings{Device: "auto", Accelerator: onGPU}.openDevice(small, false)
	if err != nil || o.device.Name() != "metal" || len(o.notes) != 0 {
		t.Fatalf("%v, notes %q", err, o.notes)
	}
	o.device.Close()
}
