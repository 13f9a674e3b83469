package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func emitState(e emitter) {
	e.expSum()
	e.delta()
}

// Fields of expSumArgs.
const (
	expSumX = iota
	expSumTop
	expSumN
	expSumOut
)

func (e emitter) expSum() {
	args := e.function("expSum", "expSumArgs", "replaces x[i] by e^(x[i] - top) and adds the results in the "+
		"package's order.")
	x, n := e.field(args, expSumX), e.field(args, expSumN)
	places := 2 * e.halves()
	for i := range places {
		e.zero(e.v(i))
	}
	const value, t, u, top = 4, 5, 6, 7
	e.VBROADCASTSS(operand.Mem{Base: args, Disp: 8 * expSumTop}, e.v(top))
	at := func(i int) operand.Mem { return operand.Mem{Base: x, Disp: i * e.width()} }
	e.Label("loop")
	e.SUBQ(operand.Imm(32), n)
	e.JL(operand.LabelRef("tail"))
	for i := range places {
		e.VMOVUPS(at(i), e.v(value))
		e.VSUBPS(e.v(top), e.v(value), e.v(value))
		e.exp(e.v(value), e.v(t), e.v(u))
		e.VMOVUPS(e.v(value), at(i))
		e.VADDPS(e.v(value), e.v(i), e.v(i))
	}
	e.add(128, x)
	e.JMP(operand.LabelRef("loop"))
	e.Label("tail")
	e.ADDQ(operand.Imm(32), n)
	e.JZ(operand.LabelRef("end"))
	mask := e.lastLanes(n)
	for i := range places {
		m := mask(i)
		e.loadMasked(at(i), m, e.v(value))
		e.VSUBPS(e.v(top), e.v(value), e.v(value))
		e.exp(e.v(value), e.v(t), e.v(u))
		e.clearOutside(e.v(value), m)
		e.storeMasked(e.v(value), m, at(i))
		e.VADDPS(e.v(value), e.v(i), e.v(i))
	}
	e.Label("end")
	e.reduce(0, 4)
	e.VMOVSS(e.x(0), operand.Mem{Base: args, Disp: 8 * expSumOut})
	e.done()
}

// Fields of deltaArgs.
const (
	deltaState = iota
	deltaQ
	deltaK
	deltaV
	deltaOut
	deltaAlpha
	deltaBeta
	deltaDv
	deltaDk
)

// delta walks the rows of the state twice each, once for S·k and once for the update and S·q; the decayed row is
// computed both times, which costs less than to store it between.
func (e emitter) delta() {
	args := e.function("delta", "deltaArgs", "is DeltaStep.")
	state, q, k := e.field(args, deltaState), e.field(args, deltaQ), e.field(args, deltaK)
	v, out, dv, dk := e.field(args, deltaV), e.field(args, deltaOut), e.field(args, deltaDv), e.field(args, deltaDk)
	places := 2 * e.halves()
	const row, other, delta, alpha = 4, 8, 11, 12
	e.VBROADCASTSS(operand.Mem{Base: args, Disp: 8 * deltaAlpha}, e.v(alpha))
	j, left := e.GP64(), e.GP64()
	at := func(p reg.GPVirtual, i int) operand.Mem {
		return operand.Mem{Base: p, Index: j, Scale: 4, Disp: i * e.width()}
	}
	blocks := func(tag string, step func(i int, load func(p reg.GPVirtual, dst int), store func())) {
		for i := range places {
			e.zero(e.v(i))
		}
		e.XORQ(j, j)
		e.MOVQ(dk, left)
		e.Label("loop" + tag)
		e.SUBQ(operand.Imm(32), left)
		e.JL(operand.LabelRef("tail" + tag))
		for i := range places {
			step(i, func(p reg.GPVirtual, dst int) { e.VMOVUPS(at(p, i), e.v(dst)) },
				func() { e.VMOVUPS(e.v(row), at(state, i)) })
		}
		e.ADDQ(operand.Imm(32), j)
		e.JMP(operand.LabelRef("loop" + tag))
		e.Label("tail" + tag)
		e.ADDQ(operand.Imm(32), left)
		e.JZ(operand.LabelRef("end" + tag))
		mask := e.lastLanes(left)
		for i := range places {
			m := mask(i)
			step(i, func(p reg.GPVirtual, dst int) { e.loadMasked(at(p, i), m, e.v(dst)) },
				func() { e.storeMasked(e.v(row), m, at(state, i)) })
		}
		e.Label("end" + tag)
		e.reduce(0, 4)
	}
	e.Label("row")
	blocks("1", func(i int, load func(p reg.GPVirtual, dst int), store func()) {
		load(state, row)
		e.VMULPS(e.v(alpha), e.v(row), e.v(row))
		load(k, other)
		e.VFMADD231PS(e.v(other), e.v(row), e.v(i))
	})
	e.VMOVSS(operand.Mem{Base: v}, e.x(1))
	e.VSUBSS(e.x(0), e.x(1), e.x(1))
	e.VMULSS(operand.Mem{Base: args, Disp: 8 * deltaBeta}, e.x(1), e.x(1))
	e.VBROADCASTSS(e.x(1), e.v(delta))
	blocks("2", func(i int, load func(p reg.GPVirtual, dst int), store func()) {
		load(state, row)
		e.VMULPS(e.v(alpha), e.v(row), e.v(row))
		load(k, other)
		e.VFMADD231PS(e.v(other), e.v(delta), e.v(row))
		store()
		load(q, other)
		e.VFMADD231PS(e.v(other), e.v(row), e.v(i))
	})
	e.VMOVSS(e.x(0), operand.Mem{Base: out})
	e.add(4, v)
	e.add(4, out)
	e.LEAQ(operand.Mem{Base: state, Index: dk, Scale: 4}, state)
	e.DECQ(dv)
	e.JNZ(operand.LabelRef("row"))
	e.done()
}
