package cpurun_test

import (
	"strings"
	"testing"

	"slipway/metal/cpurun"
	"slipway/metal/kernels"
)

// test/accel compiles this text to PTX; here only its form is checked.
func TestCUDASourceHasAnEntryForEveryKernel(t *testing.T) {
	marks := map[string]string{}
	for _, name := range kernels.Names() {
		text := kernels.Source(name)
		if other, taken := marks[cpurun.Mark(text)]; taken {
			t.Errorf("%s and %s have one mark", name, other)
		}
		marks[cpurun.Mark(text)] = name
		source, err := cpurun.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		code, err := source.CUDA(name+".metal", nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, k := range source.Kernels {
			if !strings.Contains(code, "MSL_ENTRY void mslk_"+k.Name+"(") {
				t.Errorf("%s: no entry for the kernel %s", name, k.Name)
			}
		}
		if len(source.Kernels) == 0 {
			t.Errorf("%s has no kernel", name)
		}
	}
}

func TestCUDASourceWithoutAConstantsValueIsRefused(t *testing.T) {
	for _, name := range kernels.Names() {
		source, err := cpurun.Parse(kernels.Source(name))
		if err != nil {
			t.Fatal(err)
		}
		if len(source.Constants) == 0 {
			continue
		}
		if _, err := source.CUDA(name, map[int]uint32{}); err == nil {
			t.Errorf("%s: no error for constants without values", name)
		}
		return
	}
	t.Fatal("no kernel has function constants")
}
