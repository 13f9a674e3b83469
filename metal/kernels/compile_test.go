package kernels_test

import (
	"testing"

	"slipway/metal/cpurun"
	"slipway/metal/kernels"
)

func TestEveryKernelCompiles(t *testing.T) {
	cpurun.Need(t)
	for _, name := range kernels.Names() {
		t.Run(name, func(t *testing.T) {
			l, err := cpurun.Compile(name+".metal", kernels.Source(name))
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Source.Kernels) == 0 {
				t.Fatal("no kernels found")
			}
		})
	}
}
