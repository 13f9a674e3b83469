package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileShape is a register tile: panels of 16 outputs by up to maxRows rows.
type tileShape struct{ panels, maxRows int }

// tileShapes keeps every accumulator in a register. AVX-512: 4 panels by 6 rows are 24 of 32 registers. AVX2: 16
// registers hold 12 accumulators, 2 weights and 2 inputs; one row takes its weights from memory.
func (e emitter) tileShapes() []tileShape {
	if e.isa == avx512 {
		return []tileShape{{1, 6}, {2, 6}, {3, 6}, {4, 6}}
	}
	return []tileShape{{1, 6}, {2, 2}, {4, 1}}
}

// Fields of tileArgs.
const (
	tileC = iota
	tileA
	tileB
	tileCStride
	tileAStride
	tileBStep
	tileBPanel
	tileK
	tileRows
	tileResume
	tileGroups
	tileUnits
	tileWide
)

func emitTiles(e emitter) {
	for _, s := range e.tileShapes() {
		e.tile(s)
	}
}

func (e emitter) tile(s tileShape) {
	args := e.function(fmt.Sprintf("tile%d", s.panels), "tileArgs",
		fmt.Sprintf("is runTiles for %d panels and any number of rows, %d at a time.", s.panels, s.maxRows))
	t := e.loadTile(args)
	left := e.field(args, tileRows)
	e.Label("rows")
	e.CMPQ(left, operand.Imm(uint64(s.maxRows)))
	e.JL(operand.LabelRef("tail"))
	e.tileBody(args, t, s.panels, s.maxRows)
	for range s.maxRows {
		e.ADDQ(t.cStride, t.c)
		e.ADDQ(t.aStride, t.a)
	}
	e.SUBQ(operand.Imm(uint64(s.maxRows)), left)
	e.JMP(operand.LabelRef("rows"))
	e.Label("tail")
	for r := s.maxRows - 1; r >= 1; r-- {
		next := fmt.Sprintf("not%d", r)
		e.CMPQ(left, operand.Imm(uint64(r)))
		e.JNE(operand.LabelRef(next))
		e.tileBody(args, t, s.panels, r)
		e.Label(next)
	}
	e.done()
}

type tileRegs struct {
	c, a, b, cStride, aStride, bPanel, bPanel3, resume reg.GPVirtual
}

func (e emitter) loadTile(args reg.GPVirtual) tileRegs {
	t := tileRegs{c: e.field(args, tileC), a: e.field(args, tileA), b: e.field(args, tileB),
		cStride: e.field(args, tileCStride),
		aStride: e.field(args, tileAStride), bPanel: e.field(args, tileBPanel), resume: e.field(args, tileResume)}
	t.bPanel3 = e.GP64()
	e.LEAQ(operand.Mem{Base: t.bPanel, Index: t.bPanel, Scale: 2}, t.bPanel3)
	return t
}

// accumulators are registers [0, panels·rows·halves); this one is (row, panel, half).
func (e emitter) acc(panels, r, p, h int) reg.VecPhysical {
	return e.v((r*panels+p)*e.halves() + h)
}

// begin loads the accumulators from c, or zeroes them.
func (e emitter) begin(tag string, t tileRegs, panels, rows int) {
	zero, ready := "zero"+tag, "ready"+tag
	e.TESTQ(t.resume, t.resume)
	e.JZ(operand.LabelRef(zero))
	c := e.rowsAt(t.c, t.cStride, rows)
	e.eachAcc(panels, rows, func(r, p, h int) {
		e.VMOVUPS(c.at(r, p*64+h*32), e.acc(panels, r, p, h))
	})
	e.JMP(operand.LabelRef(ready))
	e.Label(zero)
	e.eachAcc(panels, rows, func(r, p, h int) { e.zero(e.acc(panels, r, p, h)) })
	e.Label(ready)
}

// end stores the accumulators to c.
func (e emitter) end(t tileRegs, panels, rows int) {
	c := e.rowsAt(t.c, t.cStride, rows)
	e.eachAcc(panels, rows, func(r, p, h int) {
		e.VMOVUPS(e.acc(panels, r, p, h), c.at(r, p*64+h*32))
	})
}

func (e emitter) eachAcc(panels, rows int, f func(r, p, h int)) {
	for r := range rows {
		for p := range panels {
			for h := range e.halves() {
				f(r, p, h)
			}
		}
	}
}

func (e emitter) tileBody(args reg.GPVirtual, t tileRegs, panels, rows int) {
	tag := fmt.Sprint(rows)
	e.begin(tag, t, panels, rows)
	a := e.rowsAt(t.a, t.aStride, rows)
	b, step, k := e.GP64(), e.field(args, tileBStep), e.field(args, tileK)
	e.MOVQ(t.b, b)
	free := panels * rows * e.halves()
	weights := panels * e.halves()
	e.Label("k" + tag)
	if rows == 1 {
		x := e.v(free)
		e.VBROADCASTSS(a.at(0, 0), x)
		e.eachAcc(panels, 1, func(_, p, h int) {
			e.VFMADD231PS(panelAt(b, t.bPanel, t.bPanel3, p, h*32), x, e.acc(panels, 0, p, h))
		})
	} else {
		for p := range panels {
			for h := range e.halves() {
				e.VMOVUPS(panelAt(b, t.bPanel, t.bPanel3, p, h*32), e.v(free+p*e.halves()+h))
			}
		}
		for r := range rows {
			x := e.v(free + weights + r%2)
			e.VBROADCASTSS(a.at(r, 0), x)
			for p := range panels {
				for h := range e.halves() {
					e.VFMADD231PS(e.v(free+p*e.halves()+h), x, e.acc(panels, r, p, h))
				}
			}
		}
	}
	e.advance(a, rows, 4)
	e.ADDQ(step, b)
	e.DECQ(k)
	e.JNZ(operand.LabelRef("k" + tag))
	e.end(t, panels, rows)
}
