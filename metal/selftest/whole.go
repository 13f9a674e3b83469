package selftest

import (
	"fmt"

	"slipway/engine/device"
)

// samples is how many outputs of a whole matrix are compared: its first, its last, and others in between.
const samples = 64

// whole multiplies a matrix of a real model whole and compares some of its outputs. The reference multiplies only their
// rows.
func whole(n int, s Shape) Operation {
	files, tolerance := productOf(n, s)
	return Operation{fmt.Sprintf("%d rows of %v, whole", n, s), files, tolerance,
		sizes{"rows": {n}, "out": {s.out}, "in": {s.in}}, func(w *World) [][]float32 {
			x, m := w.Buffer(n, s.in), w.matrixData(s)
			chosen := make([]int, samples)
			for i := range chosen {
				chosen[i] = i * (s.out - 1) / (samples - 1)
			}
			if w.sampled {
				m = pick(m, chosen)
				for i := range chosen {
					chosen[i] = i
				}
			}
			matrix, err := w.Device.Matrix(m)
			w.must(err)
			dst := w.Output(n, m.Out)
			w.Run(Stateless(n), func(p device.Pass) { p.Linear(x, []device.Product{{W: matrix, Dst: dst}}, n) })
			out := make([][]float32, n)
			for i, row := range Rows(dst) {
				for _, at := range chosen {
					out[i] = append(out[i], row[at])
				}
			}
			return out
		}}
}

// pick makes a matrix of some rows.
func pick(m device.MatrixData, rows []int) device.MatrixData {
	part := m
	part.Out = len(rows)
	for _, p := range []struct{ to, from *[]byte }{{&part.Data, &m.Data}, {&part.Scales, &m.Scales},
		{&part.Biases, &m.Biases}} {
		width := len(*p.from) / m.Out
		*p.to = nil
		for _, r := range rows {
			*p.to = append(*p.to, (*p.from)[r*width:(r+1)*width]...)
		}
	}
	return part
}

// Whole are matrices and contexts as a model has them, whole. On a Mac they take seconds; where the CPU plays the GPU,
// a minute.
func Whole() []Operation {
	return []Operation{
		whole(1, Affine(17408, 5120, 4, 64, bf16)), whole(5, Affine(5120, 17408, 4, 64, bf16)),
		whole(1, Affine(248320, 1024, 4, 64, bf16)),
		whole(1, Affine(5120, 6144, 8, 64, bf16)), whole(1, Shape{out: 48, in: 5120, format: bf16}),
		whole(40, Affine(6144, 5120, 4, 64, bf16)),
		delta(StateOf(16, 48, 128, 128), 40), convolving(10240, 40), swiglu(40, 17408), norm(40, 5120, 0, false),
		attending(24, 4, 256, 32, place{start: 2100, n: 1}), attending(8, 2, 256, 32, place{start: 600, n: 48},
			place{start: 300, n: 20, policy: near}),
	}
}
