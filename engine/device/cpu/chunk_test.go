package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"slipway/engine/device/cpu/kernels"
)

// The chunk form and the recurrence are the same function: within 1e-4 of the largest output in float32, for chunks of
// every relation to the length, states carried in, and decays from none to almost total.
func TestChunkFormEqualsTheRecurrence(t *testing.T) {
	for _, row := range []struct {
		name          string
		tokens, chunk int
		dk, dv        int
		decay         float64
	}{
		{"one token", 1, 64, 32, 32, 1},
		{"chunk less one", 63, 64, 32, 32, 1},
		{"one chunk", 64, 64, 32, 32, 1},
		{"chunk and one", 65, 64, 32, 32, 1},
		{"several chunks and a tail", 200, 64, 32, 32, 1},
		{"chunks of one", 20, 1, 32, 32, 1},
		{"head of the 27B", 150, 64, 128, 128, 1},
		{"almost no decay", 300, 64, 32, 32, 1e-4},
		{"almost total decay", 130, 64, 32, 32, 60},
		{"key and value of other widths", 100, 64, 8, 16, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(row.tokens), uint64(row.dk)))
			random := func(n int) []float32 {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(r.NormFloat64())
				}
				return x
			}
			dk, dv, n := row.dk, row.dv, row.tokens
			q, k, v := random(n*dk), random(n*dk), random(n*dv)
			g, beta := make([]float32, n), make([]float32, n)
			for i := range n {
				kernels.L2Norm(q[i*dk:][:dk], q[i*dk:][:dk], 1e-6, float32(1/math.Sqrt(float64(dk))))
				kernels.L2Norm(k[i*dk:][:dk], k[i*dk:][:dk], 1e-6, 1)
				g[i] = float32(-row.decay * r.Float64())
				beta[i] = float32(r.Float64())
			}
			start := random(dv * dk)
			stepped, chunked := append([]float32(nil), start...), append([]float32(nil), start...)
			want, got := make([]float32, n*dv), make([]float32, n*dv)
			for i := range n {
				alpha := float32(math.Exp(float64(g[i])))
				kernels.DeltaStep(stepped, alpha, beta[i], q[i*dk:][:dk], k[i*dk:][:dk], v[i*dv:][:dv],
					want[i*dv:][:dv])
			}
			ChunkDelta(chunked, q, k, v, g, beta, got, dk, dv, row.chunk)
			for _, pair := range []struct {
				what      string
				got, want []float32
			}{{"outputs", got, want}, {"state", chunked, stepped}} {
				if d := distance(pair.got, pair.want); d > 1e-4 {
					t.Errorf("%s: off by %g of the largest value", pair.what, d)
				}
			}
		})
	}
}

// distance is the largest difference as a share of want's largest value.
func distance(got, want []float32) float64 {
	var top, worst float64
	for i, v := range want {
		top = max(top, math.Abs(float64(v)))
		if d := math.Abs(float64(got[i]) - float64(v)); d > worst || math.IsNaN(d) {
			worst = d
		}
	}
	if math.IsNaN(worst) || top == 0 {
		panic(fmt.Sprintf("a comparison of nothing: largest %g, worst %g", top, worst))
	}
	return worst / top
}
