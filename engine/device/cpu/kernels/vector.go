package kernels

// Dot returns Σ a[i]·b[i] over all i of a, in the package's order of summation with fused multiply-add in the lanes.
func Dot(a, b []float32) float32 {
	return dotPlain(a, b[:len(a)])
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

// Sum returns Σ x[i] in the package's order of summation.
func Sum(x []float32) float32 {
	var lane [32]float32
	for ; len(x) >= 32; x = x[32:] {
		for j := range lane {
			lane[j] += x[j]
		}
	}
	if len(x) > 0 {
		for j := range lane {
			if j < len(x) {
				lane[j] += x[j]
			} else {
				lane[j] += 0
			}
		}
	}
	return sumLanes(&lane)
}

// Axpy adds a·x[i] to y[i] for all i of x, one rounding each.
func Axpy(y []float32, a float32, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = fma32(a, v, y[i])
	}
}

// ScaleAdd writes s·y[i] + a·x[i] to y[i] for all i of x: s·y[i] is rounded, then fma(a, x[i], ·).
func ScaleAdd(y []float32, s, a float32, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = fma32(a, v, s*y[i])
	}
}

// Add adds x[i] to y[i] for all i of x (the residual stream).
func Add(y, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += v
	}
}

// Argmax returns the least index of the largest value of x, NaN never winning; -1 when x is empty or all NaN.
func Argmax(x []float32) int {
	best := -1
	var top float32
	for i, v := range x {
		if v > top || (best < 0 && v == v) {
			best, top = i, v
		}
	}
	return best
}
