package kernels

import (
	"fmt"
	"math"
)

func float32bits(f float32) uint32     { return math.Float32bits(f) }
func float32frombits(b uint32) float32 { return math.Float32frombits(b) }

// Mul computes y[r·yStride + o] = Σ_k W[o][k]·x[r·xStride + k] for r in [0, rows) and o in [outLo, outHi).
//
// x is read at [r·xStride, r·xStride+In), y written at those places only; the two must not overlap. Each sum is the
// chain acc = fma(W[o][k], x[k], acc), k ascending from acc = +0, with W as Row gives it: the same bits whatever the
// other arguments are. Workers may share a Mul by disjoint ranges of outputs (Split) or of rows; outputs are better.
func (m *Matrix) Mul(y []float32, yStride int, x []float32, xStride int, rows, outLo, outHi int) {
	if outLo < 0 || outHi > m.out || rows < 0 {
		panic(fmt.Sprintf("kernels: Mul of %d rows, outputs %d to %d of %d", rows, outLo, outHi, m.out))
	}
	if rows == 0 || outLo >= outHi {
		return
	}
	_ = y[(rows-1)*yStride+outHi-1]
	_ = x[(rows-1)*xStride+m.in-1]
	m.mul(y, yStride, x, xStride, rows, outLo, outHi)
}

// mulPlain is the definition of Mul. It makes 4 outputs at a time, so that 4 chains run side by side.
func (m *Matrix) mulPlain(y []float32, yStride int, x []float32, xStride int, rows, outLo, outHi int) {
	s := takeScratch()
	var w [4][]float32
	for o := outLo; o < outHi; o += 4 {
		n := min(4, outHi-o)
		for i := range w {
			w[i] = s.row(4 * m.in)[i*m.in:][:m.in]
			m.Row(w[i], min(o+i, outHi-1))
		}
		w0, w1, w2, w3 := w[0], w[1], w[2], w[3]
		for r := range rows {
			xr := x[r*xStride:][:m.in]
			var s0, s1, s2, s3 float32
			for k, v := range xr {
				s0 = fma32(w0[k], v, s0)
				s1 = fma32(w1[k], v, s1)
				s2 = fma32(w2[k], v, s2)
				s3 = fma32(w3[k], v, s3)
			}
			sum := [4]float32{s0, s1, s2, s3}
			copy(y[r*yStride+o:], sum[:n])
		}
	}
	s.give()
}
