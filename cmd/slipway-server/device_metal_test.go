package main

import (
	"strings"
	"syscall"
	"testing"

	"slipway/metal"
	"slipway/metal/cpurun"
	"slipway/metal/fake"
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

func TestMetalThatIsUsedAlthoughItIsWrong(t *testing.T) {
	for _, c := range []struct{ name, file, from, to, note, refusal string }{
		{"right", "", "", "", "", ""},
		{"a fast kernel that does not compile", "linear_gemm", "kernel void", "kernel int", "linear_gemm cannot be used here", ""},
		{"a fast kernel that answers wrongly", "rms_norm", "+ p.eps", "+ 2 * p.eps + 0.1f", "rms_norm cannot be used here (in the self-test", ""},
		{"a kernel without another variant that answers wrongly", "swiglu", "silu(gate[i])", "gate[i]", "", "the self-test of Metal failed in swiglu"},
		{"a kernel without another variant that does not compile", "delta_input", "kernel void", "kernel int", "", "kernel delta_input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := openMetal(with(t, c.file, c.from, c.to))
			if err != nil {
				if c.refusal == "" || !strings.Contains(err.Error(), c.refusal) {
					t.Fatal(err)
				}
				return
			}
			defer d.Close()
			notes := d.Degraded()
			if c.refusal != "" || strings.Join(notes, "\n") != "" != (c.note != "") || !strings.Contains(strings.Join(notes, "\n"), c.note) {
				t.Errorf("notes: %q", notes)
			}
		})
	}
}

// auto gives a small model to the CPU where Metal is refused; a large one is told what that would mean.
func TestRefusedMetalThatLeavesTheUserAlone(t *testing.T) {
	opt := with(t, "delta_input", "kernel void", "kernel int")
	options, byItself := metalOptions, metalByItself
	metalOptions, metalByItself = func() (metal.Options, error) { return opt, nil }, true
	defer func() { metalOptions, metalByItself = options, byItself }()
	pages, err := syscall.Mmap(-1, 0, 5<<30, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON) // no memory: it is never touched
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(pages)
	small, large := [][]byte{make([]byte, 1<<20)}, [][]byte{pages}
	o, err := openDevice("auto", small, false, nil)
	if err != nil || o.device.Name() != "cpu" || len(o.notes) != 1 || !strings.Contains(o.notes[0], "kernel delta_input") || !strings.Contains(o.notes[0], "CPU answers instead") {
		t.Errorf("%v, notes %q", err, o.notes)
	}
	for _, c := range []struct {
		name    string
		weights [][]byte
		says    string
	}{{"metal", small, "--device cpu works without Metal, more slowly"}, {"auto", large, "5.4 GB of the weights for every token"}, {"metal", large, "s a token"}} {
		if _, err := openDevice(c.name, c.weights, false, nil); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "kernel delta_input") {
			t.Errorf("--device %s: %v, wanted %q", c.name, err, c.says)
		}
	}
	opt.Source = nil
	o, err = openDevice("auto", small, false, nil)
	if err != nil || o.device.Name() != "metal" || len(o.notes) != 0 {
		t.Fatalf("%v, notes %q", err, o.notes)
	}
	o.device.Close()
}
