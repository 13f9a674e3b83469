package kernels

// DeltaStep advances the delta rule of one value head by one token:
//
//	S *= alpha;  m = S·k;  delta = beta·(v - m);  S += delta ⊗ k;  out = S·q
//
// state S [Dv][Dk] float32, Dk contiguous, overwritten; Dv = len(v), Dk = len(k). q [Dk], out [Dv] (may be v). Each
// row: the decayed row is rounded, m and out are dots in the package's order of summation.
func DeltaStep(state []float32, alpha, beta float32, q, k, v, out []float32) {
	dv, dk := len(v), len(k)
	deltaStep(state[:dv*dk], alpha, beta, q[:dk], k, v, out[:dv])
}

func deltaStepPlain(state []float32, alpha, beta float32, q, k, v, out []float32) {
	dk := len(k)
	for i := range v {
		row := state[i*dk:][:dk]
		for j := range row {
			row[j] *= alpha
		}
		delta := v[i] - dotPlain(row, k)
		delta *= beta
		for j := range row {
			row[j] = fma32(delta, k[j], row[j])
		}
		out[i] = dotPlain(row, q)
	}
}
