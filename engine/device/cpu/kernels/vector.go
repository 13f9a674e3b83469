package kernels

import "math"

// Dot returns Σ a[i]·b[i] over all i of a, in the package's order of summation with fused multiply-add in the lanes.
func Dot(a, b []float32) float32 {
	return dot(a, b[:len(a)])
}

func dotPlain(a, b []float32) float32 {
	var lane [32]float32
	for ; len(a) >= 32; a, b = a[32:], b[32:] {
		for j := range lane {
			lane[j] = fma32(a[j], b[j], lane[j])
		}
	}
	if len(a) > 0 {
		for j := range lane {
			if j < len(a) {
				lane[j] = fma32(a[j], b[j], lane[j])
			} else {
				lane[j] += 0
			}
		}
	}
	return sumLanes(&lane)
}

func sumLanes(lane *[32]float32) float32 {
	for half := 16; half >= 1; half /= 2 {
		for j := 0; j < half; j++ {
			lane[j] += lane[j+half]
		}
	}
	return lane[0]
}

// expSumPlain replaces x[i] by e^(x[i] - top) and returns their sum in the package's order.
func expSumPlain(x []float32, top float32) float32 {
	for i, v := range x {
		x[i] = exp32(v - top)
	}
	var lane [32]float32
	for i, v := range x {
		lane[i%32] += v
	}
	return sumLanes(&lane)
}

// largestPlain returns the largest of x that is not NaN; -Inf if there is none.
func largestPlain(x []float32) float32 {
	top := float32(math.Inf(-1))
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	return top
}

// Add adds x[i] to y[i] for all i of x (the residual stream).
func Add(y, x []float32) {
	y = y[:len(x)]
	if vector(opAdd, &vectorArgs{dst: pointer(y), x0: pointer(y), x1: pointer(x), n: len(x)}) {
		return
	}
	for i, v := range x {
		y[i] += v
	}
}
