package kernels

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigFMA is a·b + c with one rounding, by arbitrary precision.
func bigFMA(a, b, c float32) float32 {
	x := new(big.Float).SetPrec(2000).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetFloat64(float64(c)))
	f, _ := x.Float32()
	return f
}

func randomFloat(r *rand.Rand, exponents int) float32 {
	return float32(math.Ldexp(1+float64(r.Uint32()>>9)/(1<<23), r.IntN(exponents)-exponents/2)) * float32(
		1-2*int(r.Uint32()&1))
}

// A double rounding, or a multiply and an add with a rounding each, would differ from the exact sum in some of these.
func TestFMARoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	check := func(a, b, c float32) {
		if got, want := fma32(a, b, c), bigFMA(a, b, c); got != want {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
	for range 100000 {
		a, b := randomFloat(r, 20), randomFloat(r, 20)
		check(a, b, randomFloat(r, 40))
		check(a, b, -a*b)
		// The true sum is just off the middle of two float32.
		mid := randomFloat(r, 6)
		ulp := math.Nextafter32(mid, float32(math.Inf(1))) - mid
		check(ulp/2+randomFloat(r, 4)*ulp*0x1p-40, 1, mid)
		check(ulp*(0.5+0x1p-20), 1-0x1p-20, mid)
		// Subnormal results.
		check(randomFloat(r, 4)*0x1p-70, randomFloat(r, 4)*0x1p-70, randomFloat(r, 24)*0x1p-130)
	}
	inf := float32(math.Inf(1))
	for _, row := range []struct{ a, b, c, want float32 }{
		{inf, 1, 0, inf}, {1, 1, -inf, -inf}, {math.MaxFloat32, 2, 0, inf}, {0, 5, 0, 0},
	} {
		if got := fma32(row.a, row.b, row.c); got != row.want {
			t.Errorf("fma32(%v, %v, %v) = %v, want %v", row.a, row.b, row.c, got, row.want)
		}
	}
	for _, row := range [][3]float32{{inf, 0, 1}, {inf, 1, -inf}, {float32(math.NaN()), 1, 1}} {
		if got := fma32(row[0], row[1], row[2]); got == got {
			t.Errorf("fma32(%v) = %v, want NaN", row, got)
		}
	}
}
