package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

var sizes = []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 100, 127, 128, 129, 320, 1000}

// vectorCalls are the kernels on vectors of n: fill gives an input of so many numbers, room a place for results.
var vectorCalls = []struct {
	name string
	run  func(n int, fill, room func(n int) []float32) []float32
}{
	{"Exp", func(n int, fill, room func(int) []float32) []float32 { y := room(n); Exp(y, fill(n)); return y }},
	{"Exp in place", func(n int, fill, room func(int) []float32) []float32 { y := fill(n); Exp(y, y); return y }},
	{"Sigmoid", func(n int, fill, room func(int) []float32) []float32 { y := room(n); Sigmoid(y, fill(n)); return y }},
	{"Silu", func(n int, fill, room func(int) []float32) []float32 { y := room(n); Silu(y, fill(n)); return y }},
	{"SiluMul", func(n int, fill, room func(int) []float32) []float32 {
		y := room(n)
		SiluMul(y, fill(n), fill(n))
		return y
	}},
	{"SigmoidMul", func(n int, fill, room func(int) []float32) []float32 {
		y := room(n)
		SigmoidMul(y, fill(n), fill(n))
		return y
	}},
	{"Dot", func(n int, fill, room func(int) []float32) []float32 { return []float32{Dot(fill(n), fill(n))} }},
	{"Add", func(n int, fill, room func(int) []float32) []float32 { y := fill(n); Add(y, fill(n)); return y }},
	{"RMSNorm", func(n int, fill, room func(int) []float32) []float32 {
		y := room(n)
		RMSNorm(y, fill(n), fill(n), 1e-6)
		return y
	}},
	{"RMSNormGated", func(n int, fill, room func(int) []float32) []float32 {
		y := room(n)
		RMSNormGated(y, fill(n), fill(n), fill(n), 1e-6)
		return y
	}},
	{"L2Norm", func(n int, fill, room func(int) []float32) []float32 {
		y := room(n)
		L2Norm(y, fill(n), 1e-6, 0.25)
		return y
	}},
	{"ConvSilu", func(n int, fill, room func(int) []float32) []float32 {
		y := room(n)
		ConvSilu(y, fill(4*n), fill(n), fill(n), fill(n), fill(n))
		return y
	}},
	{"softmax weights", func(n int, fill, room func(int) []float32) []float32 {
		y := fill(n)
		return append(y, expSum(y, 1.5))
	}},
	{"DeltaStep", func(n int, fill, room func(int) []float32) []float32 {
		const dv = 5
		state, out := fill(dv*n), room(dv)
		DeltaStep(state, 0.9, 0.3, fill(n), fill(n), fill(dv), out)
		return append(append([]float32(nil), state...), out...)
	}},
}

// A vector form that reads past its inputs, writes past its outputs, or rounds otherwise than the plain form.
func TestVectorFormsAgree(t *testing.T) {
	for _, special := range []bool{false, true} {
		for _, c := range vectorCalls {
			for _, n := range sizes {
				run := func(t *testing.T) []float32 {
					r := newRand(uint64(n))
					return c.run(n, func(n int) []float32 {
						x := guarded(t, n)
						copy(x, randomVector(r, n))
						if special {
							for range 1 + n/20 {
								x[r.IntN(n)] = specialValue(r)
							}
						}
						return x
					}, func(n int) []float32 { return guarded(t, n) })
				}
				before := Active()
				Use(Plain)
				want := run(t)
				Use(before)
				onEach(t, func(t *testing.T) { wantSame(t, fmt.Sprintf("%s of %d", c.name, n), run(t), want) })
			}
		}
	}
}

func specialValue(r *rand.Rand) float32 {
	inf := math.Inf(1)
	list := []float64{0, math.Copysign(0, -1), inf, -inf, math.NaN(), 88.8, -88.8, -104.5, 0x1p-149, 1e-40,
		math.MaxFloat32, 25}
	return float32(list[r.IntN(len(list))])
}

// The plain forms against the formulas in float64.
func TestPlainFormsFollowFormulas(t *testing.T) {
	r := newRand(5)
	const n = 77
	x, w, z := randomVector(r, n), randomVector(r, n), randomVector(r, n)
	silu := func(v float32) float64 { return float64(v) / (1 + math.Exp(-float64(v))) }
	var squares float64
	for _, v := range x {
		squares += float64(v) * float64(v)
	}
	rms := 1 / math.Sqrt(squares/n+1e-6)
	l2 := 0.5 / math.Sqrt(squares+1e-6)
	conv := randomVector(r, 4*n)
	onEach(t, func(t *testing.T) {
		y := make([]float32, n)
		for _, row := range []struct {
			name string
			run  func()
			want func(i int) float64
		}{
			{"Silu", func() { Silu(y, x) }, func(i int) float64 { return silu(x[i]) }},
			{"SiluMul", func() { SiluMul(y, x, w) }, func(i int) float64 { return silu(x[i]) * float64(w[i]) }},
			{"Sigmoid", func() { Sigmoid(y, x) }, func(i int) float64 { return silu(x[i]) / float64(x[i]) }},
			{"SigmoidMul", func() { SigmoidMul(y, x, w) }, func(i int) float64 {
				return silu(w[i]) / float64(w[i]) * float64(x[i])
			}},
			{"RMSNorm", func() { RMSNorm(y, x, w, 1e-6) }, func(i int) float64 {
				return float64(x[i]) * rms * float64(w[i])
			}},
			{"RMSNormGated", func() { RMSNormGated(y, x, w, z, 1e-6) }, func(i int) float64 {
				return float64(x[i]) * rms * float64(w[i]) * silu(z[i])
			}},
			{"L2Norm", func() { L2Norm(y, x, 1e-6, 0.5) }, func(i int) float64 { return float64(x[i]) * l2 }},
			{"ConvSilu", func() { ConvSilu(y, convPlanes(conv), x, w, z, x) }, func(i int) float64 {
				t := conv[4*i]*x[i] + conv[4*i+1]*w[i] + conv[4*i+2]*z[i] + conv[4*i+3]*x[i]
				return silu(t)
			}},
		} {
			row.run()
			for i := range y {
				if want := row.want(i); math.Abs(float64(y[i])-want) > 2e-6*(1+math.Abs(want)) {
					t.Errorf("%s[%d] = %v, want %v", row.name, i, y[i], want)
				}
			}
		}
	})
}

func TestDeltaStepFollowsFormulas(t *testing.T) {
	r := newRand(6)
	for _, shape := range [][2]int{{32, 32}, {128, 128}, {16, 8}, {3, 24}, {1, 40}} {
		dv, dk := shape[0], shape[1]
		start, q, k, v := randomVector(r, dv*dk), randomVector(r, dk), randomVector(r, dk), randomVector(r, dv)
		const alpha, beta = 0.875, 0.25
		onEach(t, func(t *testing.T) {
			state, out := append([]float32(nil), start...), make([]float32, dv)
			DeltaStep(state, alpha, beta, q, k, v, out)
			for i := range dv {
				var m, o float64
				for j := range dk {
					m += alpha * float64(start[i*dk+j]) * float64(k[j])
				}
				delta := beta * (float64(v[i]) - m)
				for j := range dk {
					s := alpha*float64(start[i*dk+j]) + delta*float64(k[j])
					o += s * float64(q[j])
					if math.Abs(s-float64(state[i*dk+j])) > 1e-4 {
						t.Fatalf("state %d,%d of %dx%d = %v, want %v", i, j, dv, dk, state[i*dk+j], s)
					}
				}
				if math.Abs(o-float64(out[i])) > 1e-3 {
					t.Fatalf("out %d of %dx%d = %v, want %v", i, dv, dk, out[i], o)
				}
			}
		})
	}
}

// convPlanes transposes the checkpoint's taps [C][4] to the planes [4][C] of ConvSilu.
func convPlanes(taps []float32) []float32 {
	c := len(taps) / 4
	w := make([]float32, 4*c)
	for i, v := range taps[:4*c] {
		w[i%4*c+i/4] = v
	}
	return w
}
