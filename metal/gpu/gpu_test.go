package gpu

import (
	"strings"
	"testing"

	"slipway/engine/device"
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

func TestMetalIsUsedOnlyWhereItsKernelsAreRight(t *testing.T) {
	for _, c := range []struct{ name, file, from, to, note, refusal string }{
		{"right", "", "", "", "", ""},
		{"a fast kernel that does not compile", "linear_gemm", "kernel void", "kernel int",
			"linear_gemm cannot be used here", ""},
		{"a fast kernel that answers wrongly", "rms_norm", "+ p.eps", "+ 2 * p.eps + 0.1f",
			"rms_norm cannot be used here (in the self-test", ""},
		{"a kernel without another variant that answers wrongly", "swiglu", "silu(gate[i])", "gate[i]", "",
			"the self-test of Metal failed in swiglu"},
		{"a kernel without another variant that does not compile", "delta_input", "kernel void", "kernel int", "",
			"kernel delta_input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := with(t, c.file, c.from, c.to)
			d, err := Accelerator{Options: func() (metal.Options, error) { return opt, nil }}.Open(
				device.AcceleratorOptions{})
			if err != nil {
				if c.refusal == "" || !strings.Contains(err.Error(), c.refusal) {
					t.Fatal(err)
				}
				return
			}
			defer d.Close()
			notes := d.Degraded()
			if c.refusal != "" || strings.Join(notes, "\n") != "" != (c.note != "") ||
				!strings.Contains(strings.Join(notes, "\n"), c.note) {
				t.Errorf("notes: %q", notes)
			}
		})
	}
}
