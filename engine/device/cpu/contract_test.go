package cpu

import (
	"testing"

	"slipway/engine/device/cpu/kernels"
	"slipway/engine/device/devicetest"
)

// Share: a chain of 256 float32 additions is off by a few 1e-6 of the largest value.
func TestContract(t *testing.T) {
	best := kernels.Active()
	defer kernels.Use(best)
	for _, isa := range kernels.Available() {
		t.Run(isa.String(), func(t *testing.T) {
			if err := kernels.Use(isa); err != nil {
				t.Fatal(err)
			}
			dev := New(3)
			defer dev.Close()
			devicetest.Run(t, dev, devicetest.Options{Share: 2e-5, Invariant: true})
		})
	}
}
