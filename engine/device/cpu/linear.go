package cpu

import (
	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// linearTaskWeights is how many weights a task of a matrix product covers for one row: about 5 µs of work.
const linearTaskWeights = 32 << 10

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
	o.perTask = max(1, linearTaskWeights/(kernels.OutUnit*o.a.cols))
	if rows > 1 {
		o.perTask = min(o.perTask, 4) // 64 outputs, the widest tile that the kernels expand at a time
	}
	o.tasks = int32((o.panels + o.perTask - 1) / o.perTask)
	p.addTasks(o)
}

func panels(out int) int { return (out + kernels.OutUnit - 1) / kernels.OutUnit }

func (o *op) linear(task int, s *scratch) {
	lo := task * o.perTask
	hi := min(lo+o.perTask, o.panels)
	for i := range o.products {
		q := &o.products[i]
		m := q.W.(matrix)
		n := panels(m.Out())
		if lo < n && hi > 0 {
			o.product(m, q.Dst.(*buffer), q.Add, max(lo, 0)*kernels.OutUnit, min(hi*kernels.OutUnit, m.Out()), s)
		}
		lo, hi = lo-n, hi-n
	}
}

func (o *op) product(m matrix, dst *buffer, add bool, outLo, outHi int, s *scratch) {
	if !add {
		m.Mul(dst.f, dst.cols, o.a.f, o.a.cols, o.rows, outLo, outHi)
		return
	}
	width := outHi - outLo
	step := max(1, addTileFloats/width)
	for lo := 0; lo < o.rows; lo += step {
		rows := min(step, o.rows-lo)
		// Mul writes output o at y[o]: the tile is laid so that outLo falls on its first column.
		tile := s.floats(rows*width + outLo)
		m.Mul(tile, width, o.a.f[lo*o.a.cols:], o.a.cols, rows, outLo, outHi)
		for r := range rows {
			kernels.Add(dst.row(lo + r)[outLo:outHi], tile[outLo+r*width:][:width])
		}
	}
}
