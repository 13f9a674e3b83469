package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func floatWord(f float32) uint32 { return math.Float32bits(f) }

// expTerms are the coefficients of exp.go, highest power first. TestVectorFormsAgree fails where the two differ.
var expTerms = []struct {
	name  string
	value float32
}{
	{"expC5", 0.008369220292}, {"expC4", 0.0416664642}, {"expC3", 0.1666650461}, {"expC2", 0.5000000014},
	{"expC1", 1.000000011},
	{"one", 1},
}

// exp replaces x by e^x, operation by operation as exp32 does. min and max give their second Intel operand, x, when it
// is NaN.
func (e emitter) exp(x, t, u reg.VecPhysical) {
	e.VMOVUPS(e.number("expLo", -104), t)
	e.VMAXPS(x, t, x)
	e.VMOVUPS(e.number("expHi", 89), t)
	e.VMINPS(x, t, x)
	e.VMOVUPS(e.number("expMagic", 12582912), t)
	e.VFMADD231PS(e.number("expLog2E", 1.44269504088896341), x, t)
	e.VSUBPS(e.number("expMagic", 12582912), t, u)
	e.VFMADD231PS(e.number("expNegLn2Hi", -0.693145751953125), u, x)
	e.VFMADD231PS(e.number("expNegLn2Lo", -1.42860682030941723212e-06), u, x)
	e.VMOVUPS(e.number("expC6", 0.001393373072), u)
	for _, c := range expTerms {
		e.VFMADD213PS(e.number(c.name, c.value), x, u)
	}
	e.VPSUBD(e.number("expMagic", 12582912), t, t)
	e.VPSRAD(operand.Imm(1), t, x)
	e.VPSUBD(x, t, t)
	bias := e.word("expBias", 127)
	for _, k := range []reg.VecPhysical{x, t} {
		e.VPADDD(bias, k, k)
		e.VPSLLD(operand.Imm(23), k, k)
	}
	e.VMULPS(x, u, u)
	e.VMULPS(t, u, x)
}

// onePlusExpNeg writes 1 + e^-x to dst.
func (l lanes) onePlusExpNeg(x, dst reg.VecPhysical) {
	sign := l.e.word("sign", 1<<31)
	if l.e.isa == avx512 {
		l.e.VPXORD(sign, x, dst)
	} else {
		l.e.VPXOR(sign, x, dst)
	}
	l.e.exp(dst, l.r(2), l.r(3))
	l.e.VADDPS(l.e.number("one", 1), dst, dst)
}

// silu replaces x by x/(1 + e^-x), with registers 1 to 3.
func (l lanes) silu(x reg.VecPhysical) {
	l.onePlusExpNeg(x, l.r(1))
	l.e.VDIVPS(l.r(1), x, x)
}
