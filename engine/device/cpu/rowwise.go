package cpu

import (
	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// The operations that treat every row by itself.

func (p *pass) Embed(dst device.Buffer, table device.Matrix, tokens []int32) {
	o := op{kind: opEmbed, rows: len(tokens), dst: own(dst, len(tokens)), table: table.(matrix), ids: tokens}
	wantCols("embedding", o.dst.cols, o.table.In())
	p.add(o, o.dst.cols*4)
}

func (o *op) embed(lo, hi int) {
	for i := lo; i < hi; i++ {
		o.table.Row(o.dst.row(i), int(o.ids[i]))
	}
}

func (p *pass) RMSNorm(dst, x, weight device.Buffer, eps float32, rows, column int) {
	o := op{kind: opNorm, rows: rows, column: column, eps: eps, dst: own(dst, rows), a: own(x, rows), b: own(weight, 1)}
	wantCols("norm weight", o.b.cols, o.a.cols)
	if column < 0 || column+o.a.cols > o.dst.cols {
		panic("cpu: norm past its destination")
	}
	p.add(o, o.a.cols)
}

func (o *op) norm(lo, hi int) {
	for i := lo; i < hi; i++ {
		x := o.a.row(i)
		kernels.RMSNorm(o.dst.row(i)[o.column:o.column+len(x)], x, o.b.f, o.eps)
	}
}

func (p *pass) SwiGLU(dst, gate, up device.Buffer, rows int) {
	o := op{kind: opSwiGLU, rows: rows, dst: own(dst, rows), a: own(gate, rows), b: own(up, rows)}
	wantCols("gate", o.a.cols, o.dst.cols)
	wantCols("up", o.b.cols, o.dst.cols)
	p.add(o, o.dst.cols*2)
}

func (o *op) swiglu(lo, hi int) {
	n := o.dst.cols
	kernels.SiluMul(o.dst.f[lo*n:hi*n], o.a.f[lo*n:hi*n], o.b.f[lo*n:hi*n])
}

func (p *pass) Gather(dst, src device.Buffer, indices []int32) {
	o := op{kind: opGather, rows: len(indices), dst: own(dst, len(indices)), a: own(src, 0), ids: indices}
	wantCols("source", o.a.cols, o.dst.cols)
	p.add(o, o.dst.cols)
}

func (o *op) gather(lo, hi int) {
	for i := lo; i < hi; i++ {
		copy(o.dst.row(i), o.a.row(int(o.ids[i])))
	}
}

func (p *pass) GatedNorm(g device.GatedNorm) {
	o := op{kind: opGatedNorm, rows: p.rows, headDim: g.HeadDim, eps: g.Eps, dst: own(g.Dst, p.rows), a: own(g.O, p.rows), b: own(g.Z, p.rows), c: own(g.Weight, 1)}
	wantCols("norm weight", o.c.cols, g.HeadDim)
	wantCols("O", o.a.cols, o.dst.cols)
	wantCols("Z", o.b.cols, o.dst.cols)
	p.add(o, o.dst.cols*3)
}

func (o *op) gatedNorm(lo, hi int) {
	for i := lo; i < hi; i++ {
		dst, x, z := o.dst.row(i), o.a.row(i), o.b.row(i)
		for at := 0; at < len(x); at += o.headDim {
			end := at + o.headDim
			kernels.RMSNormGated(dst[at:end], x[at:end], o.c.f, z[at:end], o.eps)
		}
	}
}
