//go:build !arm64

package kernels

import "math"

// fma32 returns a*b + c rounded once to float32.
//
// The product of two float32 is exact in float64. Rounding the sum to float64 and then to float32 differs from one
// rounding only when the float64 is exactly midway between two float32 although the true sum is not; there, and where
// float32 is subnormal and its midway points lie elsewhere, the float64 is first moved by what its rounding lost.
func fma32(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	bits := math.Float64bits(s)
	if bits&0x1fffffff != 0x10000000 && bits<<1 >= 0x3810000000000000<<1 {
		return float32(s)
	}
	return fma32Odd(p, float64(c), s)
}

// fma32Odd rounds p + c to float32 by way of a float64 rounded to odd. s is p + c rounded to nearest.
func fma32Odd(p, c, s float64) float32 {
	if s == 0 || math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	t := s - p
	lost := (p - (s - t)) + (c - t) // two-sum: s + lost == p + c exactly
	bits := math.Float64bits(s)
	if lost != 0 && bits&1 == 0 {
		if (lost > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
