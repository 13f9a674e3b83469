package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func emitDense(e emitter) {
	for _, half := range []string{"BF16", "F16"} {
		e.expandHalf(half)
		for _, s := range e.fusedShapes() {
			e.fusedHalf(half, s)
		}
	}
}

func (e emitter) widen(half string, m operand.Mem, dst reg.VecPhysical) {
	if half == "BF16" {
		e.widenBF16(m, dst)
	} else {
		e.VCVTPH2PS(m, dst)
	}
}

func (e emitter) expandHalf(half string) {
	args := e.function("expand"+half, "expandArgs",
		fmt.Sprintf("writes groups (the number of k) rows of 16 %s numbers as float32.", half))
	dst, src, n := e.field(args, expandDst), e.field(args, expandSrc), e.field(args, expandGroups)
	e.Label("k")
	for h := range e.halves() {
		e.widen(half, operand.Mem{Base: src, Disp: h * 16}, e.v(h))
		e.VMOVUPS(e.v(h), operand.Mem{Base: dst, Disp: h * 32})
	}
	e.add(32, src)
	e.add(64, dst)
	e.DECQ(n)
	e.JNZ(operand.LabelRef("k"))
	e.done()
}

func (e emitter) fusedHalf(half string, s tileShape) {
	args := e.function(fmt.Sprintf("fused%sx%d", half, s.panels), "tileArgs",
		fmt.Sprintf("is the product of 1 to %d rows with %d panels of %s numbers.", s.maxRows, s.panels, half))
	t := e.loadTile(args)
	left := e.field(args, tileRows)
	for r := s.maxRows; r >= 1; r-- {
		tag, next := fmt.Sprint(r), fmt.Sprintf("not%d", r)
		if r > 1 {
			e.CMPQ(left, operand.Imm(uint64(r)))
			e.JNE(operand.LabelRef(next))
		}
		e.eachAcc(s.panels, r, func(r, p, h int) { e.zero(e.acc(s.panels, r, p, h)) })
		a := e.rowsAt(t.a, t.aStride, r)
		b, k := e.GP64(), e.field(args, tileK)
		e.MOVQ(t.b, b)
		free := s.panels * r * e.halves()
		e.Label("k" + tag)
		for p := range s.panels {
			for h := range e.halves() {
				e.widen(half, panelAt(b, t.bPanel, t.bPanel3, p, h*16), e.v(free+p*e.halves()+h))
			}
		}
		for row := range r {
			x := e.v(free + s.panels*e.halves() + row%2)
			e.VBROADCASTSS(a.at(row, 0), x)
			for p := range s.panels {
				for h := range e.halves() {
					e.VFMADD231PS(e.v(free+p*e.halves()+h), x, e.acc(s.panels, row, p, h))
				}
			}
		}
		e.advance(a, r, 4)
		e.add(32, b)
		e.DECQ(k)
		e.JNZ(operand.LabelRef("k" + tag))
		e.end(t, s.panels, r)
		e.done()
		if r > 1 {
			e.Label(next)
		}
	}
}
