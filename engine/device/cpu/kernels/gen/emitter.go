package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type isa int

const (
	avx2 isa = iota
	avx512
)

func (i isa) String() string { return [...]string{"AVX2", "AVX512"}[i] }

// An emitter writes kernels for one instruction set.
type emitter struct {
	*build.Context
	isa  isa
	data map[string]operand.Mem // of the file
}

// halves is the number of registers that hold 16 lanes.
func (e emitter) halves() int {
	if e.isa == avx512 {
		return 1
	}
	return 2
}

// width is the bytes of one register.
func (e emitter) width() int { return 64 / e.halves() }

// registers is the number of vector registers.
func (e emitter) registers() int {
	if e.isa == avx512 {
		return 32
	}
	return 16
}

// v is vector register i. Kernels number them by hand; general registers are left to avo.
func (e emitter) v(i int) reg.VecPhysical {
	if i >= e.registers() {
		panic(fmt.Sprintf("%v has no register %d", e.isa, i))
	}
	if e.isa == avx512 {
		return zmm[i]
	}
	return ymm[i]
}

var zmm = []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10,
	reg.Z11,
	reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24,
	reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}

var ymm = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10,
	reg.Y11,
	reg.Y12, reg.Y13, reg.Y14, reg.Y15}

// function begins a kernel func(args *argsType); the returned register points at the arguments.
func (e emitter) function(name, argsType, doc string) reg.GPVirtual {
	e.Function(name + e.isa.String())
	e.Attributes(attr.NOSPLIT)
	e.Pragma("noescape")
	e.SignatureExpr("func(args *byte)")
	e.Doc(fmt.Sprintf("%s%v %s args points at a %s.", name, e.isa, doc, argsType))
	p := e.GP64()
	e.Load(e.Param("args"), p)
	return p
}

// field loads the 8-byte field at index i of the argument struct.
func (e emitter) field(args reg.GPVirtual, i int) reg.GPVirtual {
	r := e.GP64()
	e.MOVQ(operand.Mem{Base: args, Disp: 8 * i}, r)
	return r
}

// done ends a kernel.
func (e emitter) done() {
	e.VZEROUPPER()
	e.RET()
}

func (e emitter) zero(r reg.VecPhysical) {
	if e.isa == avx512 {
		e.VPXORD(r, r, r)
	} else {
		e.VPXOR(r, r, r)
	}
}

func (e emitter) and(a, b, dst operand.Op) {
	if e.isa == avx512 {
		e.VPANDD(a, b, dst)
	} else {
		e.VPAND(a, b, dst)
	}
}

func (e emitter) or(a, b, dst operand.Op) {
	if e.isa == avx512 {
		e.VPORD(a, b, dst)
	} else {
		e.VPOR(a, b, dst)
	}
}

// globals returns read-only data of 32-bit words, made once for each name.
func (e emitter) globals(name string, words []uint32) operand.Mem {
	if m, ok := e.data[name]; ok {
		return m
	}
	m := e.StaticGlobal(name)
	e.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, w := range words {
		e.AddDatum(4*i, operand.U32(w))
	}
	e.data[name] = m
	return m
}

func floatBits(i int) uint32 { return math.Float32bits(float32(i)) }

// rows addresses up to 6 rows a stride apart with three registers.
type rows struct {
	first, fourth, stride reg.GPVirtual
}

// rowsAt makes the pointers of n rows that begin at base.
func (e emitter) rowsAt(base, stride reg.GPVirtual, n int) rows {
	r := rows{e.GP64(), e.GP64(), stride}
	e.MOVQ(base, r.first)
	if n > 3 {
		e.LEAQ(operand.Mem{Base: base, Index: stride, Scale: 2}, r.fourth)
		e.ADDQ(stride, r.fourth)
	}
	return r
}

// at is the place disp bytes into row i.
func (r rows) at(i, disp int) operand.Mem {
	m := operand.Mem{Base: r.first, Disp: disp}
	if i >= 3 {
		m.Base = r.fourth
	}
	if i%3 > 0 {
		m.Index, m.Scale = r.stride, uint8(i%3)
	}
	return m
}

// advance moves n rows by bytes.
func (e emitter) advance(r rows, n, bytes int) {
	e.add(bytes, r.first)
	if n > 3 {
		e.add(bytes, r.fourth)
	}
}

// panelAt is the place disp bytes into panel p of panels that begin at base, stride apart; stride3 holds 3·stride.
func panelAt(base, stride, stride3 reg.GPVirtual, p, disp int) operand.Mem {
	m := operand.Mem{Base: base, Disp: disp}
	switch p {
	case 0:
	case 3:
		m.Index, m.Scale = stride3, 1
	default:
		m.Index, m.Scale = stride, uint8(p)
	}
	return m
}

// add adds a number of bytes to a pointer.
func (e emitter) add(bytes int, r reg.GPVirtual) {
	if bytes < 128 {
		e.ADDQ(operand.U8(bytes), r)
	} else {
		e.ADDQ(operand.U32(bytes), r)
	}
}
