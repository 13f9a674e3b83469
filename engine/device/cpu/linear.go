package cpu

import (
	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// linearTaskWeights is about how many weights a task covers for one row: 5 µs of work. Panels go by fours, the widest tile
// of the kernels.
const linearTaskWeights = 32 << 10

// linearTaskRows is how many rows a task takes at most: their inputs stay in a second-level cache (2 MiB here) while all
// panels of the task pass over them, and tasks are small enough to be shared evenly.
const linearTaskRows = 128

// addTileFloats bounds the tile in which a product is made before it is added to the residual stream: 64 KiB.
const addTileFloats = 16 << 10

// Linear cuts the panels (16 outputs) of all products into tasks. Every output is one chain over the inputs, so that the
// cut shows nowhere.
func (p *pass) Linear(x device.Buffer, products []device.Product, rows int) {
	if rows == 0 {
		return
	}
	o := op{kind: opLinear, rows: rows, a: own(x, rows), products: products}
	for _, q := range products {
		m := q.W.(matrix)
		wantCols("input", o.a.cols, m.In())
		wantCols("product", own(q.Dst, rows).cols, m.Out())
		o.panels += panels(m.Out())
	}
	o.rowsPerTask, o.perTask = rows, 4
	if rows == 1 {
		o.perTask = max(4, linearTaskWeights/(kernels.OutUnit*o.a.cols)/4*4)
	}
	if rows > linearTaskRows {
		o.rowsPerTask = linearTaskRows
	}
	o.column = (rows + o.rowsPerTask - 1) / o.rowsPerTask
	o.tasks = int32((o.panels + o.perTask - 1) / o.perTask * o.column)
	p.addTasks(o)
}

func panels(out int) int { return (out + kernels.OutUnit - 1) / kernels.OutUnit }

func (o *op) linear(task int, s *scratch) {
	first := task % o.column * o.rowsPerTask
	rows := min(o.rowsPerTask, o.rows-first)
	lo := task / o.column * o.perTask
	hi := min(lo+o.perTask, o.panels)
	for i := range o.products {
		q := &o.products[i]
		m := q.W.(matrix)
		n := panels(m.Out())
		if lo < n && hi > 0 {
			o.product(q, first, rows, max(lo, 0)*kernels.OutUnit, min(hi*kernels.OutUnit, m.Out()), s)
		}
		lo, hi = lo-n, hi-n
	}
}

// product computes outputs [outLo, outHi) of rows [first, first+rows).
func (o *op) product(q *device.Product, first, rows, outLo, outHi int, s *scratch) {
	m, dst, in := q.W.(matrix), q.Dst.(*buffer), o.a.cols
	if !q.Add {
		m.Mul(dst.f[first*dst.cols:], dst.cols, o.a.f[first*in:], in, rows, outLo, outHi)
		return
	}
	width := outHi - outLo
	step := max(1, addTileFloats/width)
	for end := first + rows; first < end; first += step {
		n := min(step, end-first)
		// Mul writes output o at y[o]: the tile is laid so that outLo falls on its first column.
		tile := s.floats(n*width + outLo)
		m.Mul(tile, width, o.a.f[first*in:], in, n, outLo, outHi)
		for r := range n {
			kernels.Add(dst.row(first + r)[outLo:outHi], tile[outLo+r*width:][:width])
		}
	}
}
