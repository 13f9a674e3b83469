package cpu

import (
	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// linearTaskWeights is about how many weights a task covers for one row: 5 µs of work. Panels go by fours, the widest
// tile of the kernels.
const linearTaskWeights = 32 << 10

// linearTaskRows is how many rows a task takes at most: their inputs stay in a second-level cache (2 MiB here) while
// all panels of the task pass over them, and tasks are small enough to be shared evenly.
const linearTaskRows = 128

// addTileFloats bounds the tile in which a product is made before it is added to the residual stream: 64 KiB.
const addTileFloats = 16 << 10

// linearStep cuts the panels (16 outputs) of all products into tasks. Every output is one chain over the inputs, so
// that the result does not depend on the cut.
func linearStep(o *device.Linear, index int) step {
	s := step{kind: stepLinear, index: index, rows: o.Rows, rowsPerTask: o.Rows, perTask: 4}
	for i := range o.Products {
		s.panels += panels(o.Products[i].W.Out())
	}
	if o.Rows == 1 {
		s.perTask = max(4, linearTaskWeights/(kernels.OutUnit*o.X.Cols())/4*4)
	}
	if o.Rows > linearTaskRows {
		s.rowsPerTask = linearTaskRows
	}
	s.grid = (o.Rows + s.rowsPerTask - 1) / s.rowsPerTask
	s.tasks = int32((s.panels + s.perTask - 1) / s.perTask * s.grid)
	return s
}

func panels(out int) int { return (out + kernels.OutUnit - 1) / kernels.OutUnit }

func linear(o *device.Linear, st *step, task int, s *scratch) {
	first := task % st.grid * st.rowsPerTask
	rows := min(st.rowsPerTask, st.rows-first)
	lo := task / st.grid * st.perTask
	hi := min(lo+st.perTask, st.panels)
	for i := range o.Products {
		q := &o.Products[i]
		out := q.W.Out()
		n := panels(out)
		if lo < n && hi > 0 {
			product(own(o.X), q, first, rows, max(lo, 0)*kernels.OutUnit, min(hi*kernels.OutUnit, out), s)
		}
		lo, hi = lo-n, hi-n
	}
}

// product computes outputs [outLo, outHi) of rows [first, first+rows) of x.
func product(x *buffer, q *device.Product, first, rows, outLo, outHi int, s *scratch) {
	m, dst, in := q.W.(matrix), own(q.Dst), x.cols
	if !q.Add {
		m.Mul(dst.f[first*dst.cols:], dst.cols, x.f[first*in:], in, rows, outLo, outHi)
		return
	}
	width := outHi - outLo
	step := max(1, addTileFloats/width)
	for end := first + rows; first < end; first += step {
		n := min(step, end-first)
		// Mul writes output o at y[o]: the tile is laid so that outLo falls on its first column.
		tile := s.floats(n*width + outLo)
		m.Mul(tile, width, x.f[first*in:], in, n, outLo, outHi)
		for r := range n {
			kernels.Add(dst.row(first + r)[outLo:outHi], tile[outLo+r*width:][:width])
		}
	}
}
