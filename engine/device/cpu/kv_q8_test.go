package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestEightBitRoundTripIsWithinHalfAStep(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{1, 1e-3, 1e-20, 3e4} {
		x := make([]float32, 128)
		for i := range x {
			x[i] = float32(r.NormFloat64() * scale / 4)
		}
		kept := append([]float32(nil), x...)
		roundTrip(kept)
		for g := range 2 {
			low, high := float32(math.Inf(1)), float32(math.Inf(-1))
			for _, v := range x[64*g:][:64] {
				low, high = min(low, v), max(high, v)
			}
			// Half a step, with scale and bias rounded to 8 bits such that the codes still reach all values.
			bound := (float64(high-low) + math.Abs(float64(low))/128) / 510 * (1 + 1.0/64)
			for i := 64 * g; i < 64*g+64; i++ {
				if d := math.Abs(float64(kept[i] - x[i])); d > bound {
					t.Fatalf("scale %g: %g became %g, wanted within %g", scale, x[i], kept[i], bound)
				}
			}
		}
		again := append([]float32(nil), kept...)
		roundTrip(again)
		for i := range again {
			if d := math.Abs(float64(again[i] - kept[i])); d > 2e-2*scale {
				t.Fatalf("scale %g: a second storing moves %g to %g", scale, kept[i], again[i])
			}
		}
	}
	same := make([]float32, 64)
	for i := range same {
		same[i] = 3
	}
	roundTrip(same)
	if same[0] != 3 || same[63] != 3 {
		t.Errorf("equal values of 3 became %v", same[0])
	}
	same[5] = float32(math.NaN())
	roundTrip(same)
	if same[0] == same[0] {
		t.Error("a NaN of a group is hidden")
	}
}
