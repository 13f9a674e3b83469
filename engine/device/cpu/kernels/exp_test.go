package kernels

import (
	"math"
	"testing"
)

// Errors of more than 1 ulp, a wrong end of the range, or a step down would show here: about 400,000 arguments.
func TestExpError(t *testing.T) {
	worst := 0.0
	for b := uint64(0); b < 1<<32; b += 10007 { // every 10,007th float
		x := math.Float32frombits(uint32(b))
		got := exp32(x)
		want := math.Exp(float64(x))
		if x != x {
			if got == got {
				t.Fatalf("exp32(NaN) = %v", got)
			}
			continue
		}
		if float32(want) == got {
			continue
		}
		ulp := math.Max(math.Abs(float64(math.Nextafter32(float32(want), float32(math.Inf(1))))-float64(float32(want))),
			0x1p-149)
		if want > math.MaxFloat32 {
			t.Fatalf("exp32(%v) = %v, want %v", x, got, want)
		}
		worst = max(worst, math.Abs(float64(got)-want)/ulp)
	}
	if worst > 1 {
		t.Errorf("error of %v ulp, documented as 1", worst)
	}
	t.Logf("worst error %.3f ulp", worst)
	for _, row := range []struct{ x, want float32 }{
		{0, 1}, {float32(math.Inf(1)), float32(math.Inf(1))}, {float32(math.Inf(-1)), 0}, {89, float32(math.Inf(1))},
		{-104, 0},
		{-103.9, 0x1p-149}, {float32(math.Copysign(0, -1)), 1},
	} {
		if got := exp32(row.x); got != row.want {
			t.Errorf("exp32(%v) = %v, want %v", row.x, got, row.want)
		}
	}
}
