package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of vectorArgs.
const (
	vectorDst = iota
	vectorX0
	vectorX1
	vectorX2
	vectorX3
	vectorW
	vectorN
	vectorS // float32
	vectorT // float32
)

// vector registers of an elementwise kernel: 6 a half for its body, then 2 scalars, then 2 tail masks (AVX2).
const (
	bodyRegs  = 6
	scalarReg = 12
	maskReg   = 14
)

// lanes is what the body of an elementwise kernel sees: one register's worth of elements.
type lanes struct {
	e    emitter
	load func(input int, dst reg.VecPhysical)
	base int
}

// r is body register i.
func (l lanes) r(i int) reg.VecPhysical { return l.e.v(l.base + i) }

// s is the broadcast scalar.
func (l lanes) s() reg.VecPhysical { return l.e.v(scalarReg) }

// elementwise writes a kernel dst[i] = f(x0[i], …); body leaves the result in r(0).
func (e emitter) elementwise(name, doc string, inputs []int, scalars int, body func(l lanes)) {
	args := e.function(name, "vectorArgs", doc)
	dst, n := e.field(args, vectorDst), e.field(args, vectorN)
	in := map[int]reg.GPVirtual{}
	for _, i := range inputs {
		in[i] = e.pointer(args, i, n)
	}
	for i := range scalars {
		e.VBROADCASTSS(operand.Mem{Base: args, Disp: 8 * (vectorS + i)}, e.v(scalarReg+i))
	}
	i := e.GP64()
	e.XORQ(i, i)
	at := func(p reg.GPVirtual, disp int) operand.Mem {
		return operand.Mem{Base: p, Index: i, Scale: 4, Disp: disp}
	}
	e.Label("loop")
	e.SUBQ(operand.Imm(16), n)
	e.JL(operand.LabelRef("tail"))
	for h := range e.halves() {
		l := lanes{e: e, base: h * bodyRegs, load: func(p int, dst reg.VecPhysical) { e.VMOVUPS(at(in[p], h*32), dst) }}
		body(l)
		e.VMOVUPS(l.r(0), at(dst, h*32))
	}
	e.ADDQ(operand.Imm(16), i)
	e.JMP(operand.LabelRef("loop"))
	e.Label("tail")
	e.ADDQ(operand.Imm(16), n)
	e.JZ(operand.LabelRef("end"))
	e.tailMasks(n, 1)
	for h := range e.halves() {
		l := lanes{e: e, base: h * bodyRegs, load: func(p int, dst reg.VecPhysical) {
			e.loadMasked(at(in[p], h*32), e.mask(h), dst)
		}}
		body(l)
		e.storeMasked(l.r(0), e.mask(h), at(dst, h*32))
	}
	e.Label("end")
	e.done()
}

// pointer is an input's pointer; inputs from vectorW on are planes of n numbers.
func (e emitter) pointer(args reg.GPVirtual, input int, n reg.GPVirtual) reg.GPVirtual {
	p := e.field(args, min(input, vectorW))
	for range input - vectorW {
		e.LEAQ(operand.Mem{Base: p, Index: n, Scale: 4}, p)
	}
	return p
}

// maskTable points at words of which those before n, n in 1 to 31, are all ones, and the others up to 32 zero.
func (e emitter) maskTable(n reg.GPVirtual) reg.GPVirtual {
	words := make([]uint32, 64)
	for i := range 32 {
		words[i] = 1<<32 - 1
	}
	m := e.globals("tailMask", words)
	p, bytes := e.GP64(), e.GP64()
	e.LEAQ(m, p)
	e.ADDQ(operand.U32(128), p)
	e.MOVQ(n, bytes)
	e.SHLQ(operand.Imm(2), bytes)
	e.SUBQ(bytes, p)
	return p
}

// tailMasks makes masks of the first n of 16·places lanes, n in 1 to 31: K1, K2, or from register maskReg+1 down.
func (e emitter) tailMasks(n reg.GPVirtual, places int) {
	p := e.maskTable(n)
	for i := range places * e.halves() {
		at := operand.Mem{Base: p, Disp: i * e.width()}
		if e.isa == avx512 {
			e.VMOVUPS(at, e.v(31))
			e.VPMOVD2M(e.v(31), e.mask(i))
		} else {
			e.VMOVUPS(at, e.v(maskReg+1-i))
		}
	}
}

func (e emitter) mask(i int) reg.Register {
	if e.isa == avx512 {
		return []reg.Register{reg.K1, reg.K2}[i]
	}
	return e.v(maskReg + 1 - i)
}

func emitVector(e emitter) {
	x0, x1 := vectorX0, vectorX1
	e.elementwise("exp", "is Exp.", []int{x0}, 0, func(l lanes) {
		l.load(x0, l.r(0))
		e.exp(l.r(0), l.r(1), l.r(2))
	})
	e.elementwise("sigmoid", "is Sigmoid.", []int{x0}, 0, func(l lanes) {
		l.load(x0, l.r(0))
		l.onePlusExpNeg(l.r(0), l.r(1))
		e.VMOVUPS(e.number("one", 1), l.r(2))
		e.VDIVPS(l.r(1), l.r(2), l.r(0))
	})
	e.elementwise("silu", "is Silu.", []int{x0}, 0, func(l lanes) {
		l.load(x0, l.r(0))
		l.silu(l.r(0))
	})
	e.elementwise("siluMul", "is SiluMul.", []int{x0, x1}, 0, func(l lanes) {
		l.load(x0, l.r(0))
		l.silu(l.r(0))
		l.load(x1, l.r(4))
		e.VMULPS(l.r(4), l.r(0), l.r(0))
	})
	e.elementwise("sigmoidMul", "is SigmoidMul: x0 by the sigmoid of x1.", []int{x0, x1}, 0, func(l lanes) {
		l.load(x1, l.r(0))
		l.onePlusExpNeg(l.r(0), l.r(1))
		e.VMOVUPS(e.number("one", 1), l.r(2))
		e.VDIVPS(l.r(1), l.r(2), l.r(0))
		l.load(x0, l.r(4))
		e.VMULPS(l.r(4), l.r(0), l.r(0))
	})
	e.elementwise("scaleMul", "is x0·s·x1.", []int{x0, x1}, 1, func(l lanes) {
		l.load(x0, l.r(0))
		e.VMULPS(l.s(), l.r(0), l.r(0))
		l.load(x1, l.r(1))
		e.VMULPS(l.r(1), l.r(0), l.r(0))
	})
	e.elementwise("scaleMulSilu", "is x0·s·x1·silu(x2).", []int{x0, x1, vectorX2}, 1, func(l lanes) {
		l.load(vectorX2, l.r(0))
		l.silu(l.r(0))
		l.load(x0, l.r(4))
		e.VMULPS(l.s(), l.r(4), l.r(4))
		l.load(x1, l.r(5))
		e.VMULPS(l.r(5), l.r(4), l.r(4))
		e.VMULPS(l.r(4), l.r(0), l.r(0))
	})
	e.elementwise("scale", "is x0·s.", []int{x0}, 1, func(l lanes) {
		l.load(x0, l.r(0))
		e.VMULPS(l.s(), l.r(0), l.r(0))
	})
	e.elementwise("divide", "is x0/s.", []int{x0}, 1, func(l lanes) {
		l.load(x0, l.r(0))
		e.VDIVPS(l.s(), l.r(0), l.r(0))
	})
	e.elementwise("add", "is x0 + x1.", []int{x0, x1}, 0, func(l lanes) {
		l.load(x0, l.r(0))
		l.load(x1, l.r(1))
		e.VADDPS(l.r(1), l.r(0), l.r(0))
	})
	e.elementwise("convSilu", "is ConvSilu: x0 to x3 are the rows, w the planes of taps.",
		[]int{x0, x1, vectorX2, vectorX3, vectorW, vectorW + 1, vectorW + 2, vectorW + 3}, 0, func(l lanes) {
			l.load(x0, l.r(0))
			l.load(vectorW, l.r(1))
			e.VMULPS(l.r(1), l.r(0), l.r(0))
			for i := 1; i < 4; i++ {
				l.load(x0+i, l.r(1))
				l.load(vectorW+i, l.r(2))
				e.VFMADD231PS(l.r(1), l.r(2), l.r(0))
			}
			l.silu(l.r(0))
		})
	e.sums()
}

// Fields of sumArgs.
const (
	sumX = iota
	sumY
	sumN
	sumOut
)

// sums writes dot and max. A block is 32 lanes: accumulators 0 to 31 in registers [0, 2·halves).
func (e emitter) sums() {
	places := 2 * e.halves()
	dotStep := func(load func(p reg.GPVirtual, i int, dst reg.VecPhysical), x, y reg.GPVirtual) {
		for i := range places {
			load(x, i, e.v(4+i))
			load(y, i, e.v(8+i))
			e.VFMADD231PS(e.v(8+i), e.v(4+i), e.v(i))
		}
	}
	args := e.function("dot", "sumArgs", "is Dot.")
	x, y, n := e.field(args, sumX), e.field(args, sumY), e.field(args, sumN)
	for i := range places {
		e.zero(e.v(i))
	}
	full := func(p reg.GPVirtual, i int, dst reg.VecPhysical) {
		e.VMOVUPS(operand.Mem{Base: p, Disp: i * e.width()}, dst)
	}
	e.Label("loop")
	e.SUBQ(operand.Imm(32), n)
	e.JL(operand.LabelRef("tail"))
	dotStep(full, x, y)
	e.add(128, x)
	e.add(128, y)
	e.JMP(operand.LabelRef("loop"))
	e.Label("tail")
	e.ADDQ(operand.Imm(32), n)
	e.JZ(operand.LabelRef("end"))
	mask := e.lastLanes(n)
	dotStep(func(p reg.GPVirtual, i int, dst reg.VecPhysical) {
		e.loadMasked(operand.Mem{Base: p, Disp: i * e.width()}, mask(i), dst)
	}, x, y)
	e.Label("end")
	e.reduce(0, 4)
	e.VMOVSS(e.x(0), operand.Mem{Base: args, Disp: 8 * sumOut})
	e.done()

	args = e.function("max", "sumArgs", "is the largest of x that is not NaN, n > 0; -Inf if there is none.")
	x, n = e.field(args, sumX), e.field(args, sumN)
	e.VMOVUPS(e.number("negInf", 0), e.v(0))
	e.Label("loop")
	e.SUBQ(operand.Imm(8), n)
	e.JL(operand.LabelRef("tail"))
	e.VMOVUPS(operand.Mem{Base: x}, reg.Y1)
	e.VMAXPS(reg.Y0, reg.Y1, reg.Y0)
	e.add(32, x)
	e.JMP(operand.LabelRef("loop"))
	e.Label("tail")
	e.ADDQ(operand.Imm(8), n)
	e.VEXTRACTF128(operand.Imm(1), reg.Y0, reg.X1)
	e.VMAXPS(reg.X0, reg.X1, reg.X0)
	e.VPERMILPS(operand.Imm(0x0e), reg.X0, reg.X1)
	e.VMAXPS(reg.X0, reg.X1, reg.X0)
	e.VPERMILPS(operand.Imm(1), reg.X0, reg.X1)
	e.VMAXSS(reg.X0, reg.X1, reg.X0)
	e.Label("one")
	e.DECQ(n)
	e.JL(operand.LabelRef("end"))
	e.VMOVSS(operand.Mem{Base: x}, reg.X1)
	e.VMAXSS(reg.X0, reg.X1, reg.X0)
	e.add(4, x)
	e.JMP(operand.LabelRef("one"))
	e.Label("end")
	e.VMOVSS(reg.X0, operand.Mem{Base: args, Disp: 8 * sumOut})
	e.done()
}

// lastLanes prepares the masks of the first n of 32 lanes. The function returned gives the mask of register i of them;
// AVX2 has no 4 registers to spare and loads it into register 13.
func (e emitter) lastLanes(n reg.GPVirtual) func(i int) reg.Register {
	if e.isa == avx512 {
		e.tailMasks(n, 2)
		return e.mask
	}
	p := e.maskTable(n)
	return func(i int) reg.Register {
		e.VMOVUPS(operand.Mem{Base: p, Disp: i * 32}, e.v(13))
		return e.v(13)
	}
}

// loadMasked loads the lanes of mask, zeros elsewhere.
func (e emitter) loadMasked(m operand.Mem, mask reg.Register, dst reg.VecPhysical) {
	if e.isa == avx512 {
		e.VMOVUPS_Z(m, mask, dst)
	} else {
		e.VMASKMOVPS(m, mask, dst)
	}
}

// storeMasked stores the lanes of mask.
func (e emitter) storeMasked(src reg.VecPhysical, mask reg.Register, m operand.Mem) {
	if e.isa == avx512 {
		e.VMOVUPS(src, mask, m)
	} else {
		e.VMASKMOVPS(src, mask, m)
	}
}

// clearOutside zeroes the lanes outside mask.
func (e emitter) clearOutside(r reg.VecPhysical, mask reg.Register) {
	if e.isa == avx512 {
		e.VMOVUPS_Z(r, mask, r)
	} else {
		e.VANDPS(mask.(reg.VecPhysical), r, r)
	}
}

// reduce adds the 32 lanes that begin at register first in the package's order; the sum is in the lowest lane of first.
func (e emitter) reduce(first, temp int) {
	if e.isa == avx512 {
		e.VADDPS(e.v(first+1), e.v(first), e.v(first))
		e.VEXTRACTF64X4(operand.Imm(1), e.v(first), e.y(temp))
		e.VADDPS(e.y(temp), e.y(first), e.y(first))
	} else {
		e.VADDPS(e.v(first+2), e.v(first), e.v(first))
		e.VADDPS(e.v(first+3), e.v(first+1), e.v(first+1))
		e.VADDPS(e.v(first+1), e.v(first), e.v(first))
	}
	e.VEXTRACTF128(operand.Imm(1), e.y(first), e.x(temp))
	e.VADDPS(e.x(temp), e.x(first), e.x(first))
	e.VPERMILPS(operand.Imm(0x0e), e.x(first), e.x(temp))
	e.VADDPS(e.x(temp), e.x(first), e.x(first))
	e.VPERMILPS(operand.Imm(1), e.x(first), e.x(temp))
	e.VADDSS(e.x(temp), e.x(first), e.x(first))
}

// y and x are the lower parts of vector register i, i < 16.
func (e emitter) y(i int) reg.Register { return ymm[i] }
func (e emitter) x(i int) reg.Register { return ymm[i].AsX() }

// number is a constant in all 16 lanes, in memory.
func (e emitter) number(name string, value float32) operand.Mem {
	bits := floatWord(value)
	if name == "negInf" {
		bits = 0xff800000
	}
	return e.word(name, bits)
}

func (e emitter) word(name string, bits uint32) operand.Mem {
	words := make([]uint32, 16)
	for i := range words {
		words[i] = bits
	}
	return e.globals(fmt.Sprintf("%sx16", name), words)
}
