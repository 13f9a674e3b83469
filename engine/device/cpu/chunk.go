package cpu

import "math"

// ChunkDelta is the delta rule in chunk form, one value head: the reference of what a device does that turns the
// recurrence into matrix products. The CPU itself runs the recurrence, which gives the same bits for any cut; this form
// does not.
//
// q, k [T, Dk], normed and q scaled; v [T, Dv]; g [T] = log α <= 0; beta [T]; state [Dv, Dk] is advanced; out [T, Dv].
// chunk is C >= 1; a short last chunk is allowed. With G_i = Σ_{j<=i} g_j within a chunk, only differences G_i-G_j, j
// <= i, are exponentiated, which are never positive:
//
//	L_ij = β_i (k_i·k_j) e^(G_i-G_j), j < i     T = (I+L)^-1 by forward substitution
//	V'_i = T applied to β_i (v_i - e^(G_i) S k_i)
//	o_i  = e^(G_i) S q_i + Σ_{j<=i} (q_i·k_j) e^(G_i-G_j) V'_j
//	S    = e^(G_last) S + Σ_i e^(G_last-G_i) V'_i k_iᵀ
func ChunkDelta(state, q, k, v, g, beta, out []float32, dk, dv, chunk int) {
	total := len(g)
	sums := make([]float32, chunk)
	fresh := make([]float32, chunk*dv) // V'
	for at := 0; at < total; at += chunk {
		n := min(chunk, total-at)
		var sum float32
		for i := range n {
			sum += g[at+i]
			sums[i] = sum
		}
		key := func(i int) []float32 { return k[(at+i)*dk:][:dk] }
		query := func(i int) []float32 { return q[(at+i)*dk:][:dk] }
		for i := range n {
			row := fresh[i*dv:][:dv]
			decay := exp(sums[i])
			for d := range row {
				row[d] = beta[at+i] * (v[(at+i)*dv+d] - decay*dotPlain(state[d*dk:][:dk], key(i)))
			}
			for j := range i {
				l := beta[at+i] * dotPlain(key(i), key(j)) * exp(sums[i]-sums[j])
				for d := range row {
					row[d] -= l * fresh[j*dv+d]
				}
			}
		}
		for i := range n {
			row := out[(at+i)*dv:][:dv]
			decay := exp(sums[i])
			for d := range row {
				row[d] = decay * dotPlain(state[d*dk:][:dk], query(i))
			}
			for j := range i + 1 {
				a := dotPlain(query(i), key(j)) * exp(sums[i]-sums[j])
				for d := range row {
					row[d] += a * fresh[j*dv+d]
				}
			}
		}
		last := sums[n-1]
		for d := range dv {
			row := state[d*dk:][:dk]
			for e := range row {
				row[e] *= exp(last)
			}
			for i := range n {
				a := exp(last-sums[i]) * fresh[i*dv+d]
				for e, x := range key(i) {
					row[e] += a * x
				}
			}
		}
	}
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

func dotPlain(a, b []float32) float32 {
	var sum float32
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
