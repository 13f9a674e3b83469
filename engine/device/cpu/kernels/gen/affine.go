package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A unit is the least run of k whose codes fill whole words.
func unitValues(bits int) int { return map[int]int{2: 16, 3: 32, 4: 8, 5: 32, 6: 16, 8: 4}[bits] }
func unitBytes(bits int) int  { return unitValues(bits) * bits / 32 * 64 }

// Fields of expandArgs.
const (
	expandDst = iota
	expandSrc
	expandGroups
	expandUnits
	expandWide
)

func emitAffine(e emitter) {
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		e.expandAffine(bits)
	}
	for _, bits := range []int{4, 8} {
		for _, s := range e.fusedShapes() {
			e.fusedAffine(bits, s)
		}
	}
}

// fusedShapes are the register tiles of products that unpack weights on the way: for few rows.
func (e emitter) fusedShapes() []tileShape {
	if e.isa == avx512 {
		return []tileShape{{1, 4}, {2, 4}, {3, 4}, {4, 4}}
	}
	return []tileShape{{1, 4}, {2, 1}}
}

// codes holds the registers that unpacking needs.
type codes struct {
	bits  int
	table [2]reg.VecPhysical // AVX-512: float values of the codes; [0] is the mask otherwise
}

// tables is the number of registers of codes.
func (e emitter) tables(bits int) int {
	if e.isa == avx512 && bits == 5 {
		return 2
	}
	return 1
}

// loadCodes fills the registers of codes, which begin at register first.
//
// AVX-512 looks the value up: VPERMPS reads the low 4 bits of each lane as an index, so codes of up to 4 bits need no
// mask (the table of shorter codes repeats itself), and VPERMI2PS reads 5.
func (e emitter) loadCodes(bits, first int) codes {
	c := codes{bits: bits}
	for i := range e.tables(bits) {
		c.table[i] = e.v(first + i)
	}
	if e.isa == avx512 && bits <= 5 {
		words := make([]uint32, 16*e.tables(bits))
		for i := range words {
			words[i] = floatBits(i & (1<<bits - 1))
		}
		m := e.globals(fmt.Sprintf("codes%d", bits), words)
		for i := range e.tables(bits) {
			e.VMOVUPS(m.Offset(64*i), c.table[i])
		}
		return c
	}
	m := e.globals(fmt.Sprintf("mask%d", bits), []uint32{1<<bits - 1})
	e.VPBROADCASTD(m, c.table[0])
	return c
}

// unpack writes the float value of code j of the unit at word (a function of the word's number) to dst; spare is
// overwritten where a code straddles words.
func (e emitter) unpack(c codes, j int, word func(i int) operand.Mem, dst, spare reg.VecPhysical) {
	at, shift := j*c.bits/32, j*c.bits%32
	straddles := shift+c.bits > 32
	if e.isa == avx512 {
		switch {
		case shift == 0:
			e.VMOVDQU32(word(at), dst)
		default:
			e.VPSRLD(operand.Imm(uint64(shift)), word(at), dst)
		}
		if straddles {
			e.VPSLLD(operand.Imm(uint64(32-shift)), word(at+1), spare)
			e.VPORD(spare, dst, dst)
		}
		switch {
		case c.bits < 5:
			e.VPERMPS(c.table[0], dst, dst)
		case c.bits == 5:
			e.VPERMI2PS(c.table[1], c.table[0], dst)
		default:
			if shift+c.bits != 32 {
				e.VPANDD(c.table[0], dst, dst)
			}
			e.VCVTDQ2PS(dst, dst)
		}
		return
	}
	if shift == 0 {
		e.VPAND(word(at), c.table[0], dst)
	} else {
		e.VMOVDQU(word(at), dst)
		e.VPSRLD(operand.Imm(uint64(shift)), dst, dst)
		if straddles {
			e.VMOVDQU(word(at+1), spare)
			e.VPSLLD(operand.Imm(uint64(32-shift)), spare, spare)
			e.VPOR(spare, dst, dst)
		}
		if shift+c.bits != 32 {
			e.VPAND(c.table[0], dst, dst)
		}
	}
	e.VCVTDQ2PS(dst, dst)
}

// unpackHeld is unpack for AVX2 and codes that straddle no words: each word is loaded into a register once. Products of
// 2 and 3 rows take 4 and 3 % less time by it (320x1792, fastest of 400, two cores of an AMD EPYC, December 2026).
func (e emitter) unpackHeld(c codes, j int, word func(i int) operand.Mem, held, dst reg.VecPhysical) {
	at, shift := j*c.bits/32, j*c.bits%32
	if shift == 0 {
		e.VMOVDQU(word(at), held)
		e.VPAND(held, c.table[0], dst)
	} else {
		e.VPSRLD(operand.Imm(uint64(shift)), held, dst)
		if shift+c.bits != 32 {
			e.VPAND(c.table[0], dst, dst)
		}
	}
	e.VCVTDQ2PS(dst, dst)
}

// loadScales loads scales and biases of one group of panels into registers scale(p, h) and bias(p, h) and moves src
// past them.
func (e emitter) loadScales(tag string, wide, src reg.GPVirtual, panels int, at func(p, disp int) operand.Mem, scale,
	bias func(p, h int) reg.VecPhysical) {
	narrow, ready := "narrow"+tag, "ready"+tag
	e.TESTQ(wide, wide)
	e.JZ(operand.LabelRef(narrow))
	for p := range panels {
		for h := range e.halves() {
			e.VMOVUPS(at(p, h*32), scale(p, h))
			e.VMOVUPS(at(p, 64+h*32), bias(p, h))
		}
	}
	e.add(128, src)
	e.JMP(operand.LabelRef(ready))
	e.Label(narrow)
	for p := range panels {
		for h := range e.halves() {
			e.widenBF16(at(p, h*16), scale(p, h))
			e.widenBF16(at(p, 32+h*16), bias(p, h))
		}
	}
	e.add(64, src)
	e.Label(ready)
}

func (e emitter) widenBF16(m operand.Mem, dst reg.VecPhysical) {
	e.VPMOVZXWD(m, dst)
	e.VPSLLD(operand.Imm(16), dst, dst)
}

func (e emitter) expandAffine(bits int) {
	args := e.function(fmt.Sprintf("expand%d", bits), "expandArgs",
		fmt.Sprintf("writes the weights of groups of %d-bit codes of one panel as [k][16] float32.", bits))
	dst, src := e.field(args, expandDst), e.field(args, expandSrc)
	groups, wide := e.field(args, expandGroups), e.field(args, expandWide)
	c := e.loadCodes(bits, 0)
	scaleAt := e.tables(bits)
	biasAt := scaleAt + e.halves()
	free := biasAt + e.halves()
	scale := func(_, h int) reg.VecPhysical { return e.v(scaleAt + h) }
	bias := func(_, h int) reg.VecPhysical { return e.v(biasAt + h) }
	e.Label("group")
	e.loadScales("", wide, src, 1, func(_, disp int) operand.Mem { return operand.Mem{Base: src, Disp: disp} }, scale,
		bias)
	units := e.field(args, expandUnits)
	e.Label("unit")
	turn := 0
	for j := range unitValues(bits) {
		for h := range e.halves() {
			w, spare := e.v(free+turn%4), e.v(free+4+turn%2)
			turn++
			e.unpack(c, j, func(i int) operand.Mem { return operand.Mem{Base: src, Disp: i*64 + h*32} }, w, spare)
			e.VFMADD213PS(bias(0, h), scale(0, h), w)
			e.VMOVUPS(w, operand.Mem{Base: dst, Disp: j*64 + h*32})
		}
	}
	e.add(unitBytes(bits), src)
	e.add(unitValues(bits)*64, dst)
	e.DECQ(units)
	e.JNZ(operand.LabelRef("unit"))
	e.DECQ(groups)
	e.JNZ(operand.LabelRef("group"))
	e.done()
}

func (e emitter) fusedAffine(bits int, s tileShape) {
	args := e.function(fmt.Sprintf("fused%dx%d", bits, s.panels), "tileArgs",
		fmt.Sprintf("is the product of 1 to %d rows with %d panels of %d-bit codes.", s.maxRows, s.panels, bits))
	t := e.loadTile(args)
	left := e.field(args, tileRows)
	for r := s.maxRows; r >= 1; r-- {
		next := fmt.Sprintf("not%d", r)
		if r > 1 {
			e.CMPQ(left, operand.Imm(uint64(r)))
			e.JNE(operand.LabelRef(next))
		}
		e.fusedBody(args, t, bits, s.panels, r)
		e.done()
		if r > 1 {
			e.Label(next)
		}
	}
}

// ahead is how many bytes before their use codes are asked for. On a 300 MB matrix it takes the AVX-512 product of one
// row from
// 11.8 to 13.4 GB/s, where a plain read gets 16.5 (two-core Xeon VM, November 2026); 512 does the same, 2048 and 4096
// less.
const ahead = 1024

func (e emitter) fusedBody(args reg.GPVirtual, t tileRegs, bits, panels, rows int) {
	tag := fmt.Sprint(rows)
	hs := e.halves()
	free := panels * rows * hs
	c := e.loadCodes(bits, free)
	scaleAt := free + e.tables(bits)
	biasAt := scaleAt + panels*hs
	scale := func(p, h int) reg.VecPhysical { return e.v(scaleAt + p*hs + h) }
	bias := func(p, h int) reg.VecPhysical { return e.v(biasAt + p*hs + h) }
	temp := biasAt + panels*hs
	held := e.isa == avx2 && panels == 1 && temp+3+hs <= e.registers() // words of codes stay in registers

	e.eachAcc(panels, rows, func(r, p, h int) { e.zero(e.acc(panels, r, p, h)) })
	a := e.rowsAt(t.a, t.aStride, rows)
	b := e.GP64()
	e.MOVQ(t.b, b)
	at := func(p, disp int) operand.Mem { return panelAt(b, t.bPanel, t.bPanel3, p, disp) }
	groups, wide := e.field(args, tileGroups), e.field(args, tileWide)
	e.Label("group" + tag)
	e.loadScales("s"+tag, wide, b, panels, at, scale, bias)
	units := e.field(args, tileUnits)
	e.Label("unit" + tag)
	turn := 0
	for p := range panels {
		for line := range unitBytes(bits) / 64 {
			e.PREFETCHT0(at(p, ahead+64*line))
		}
	}
	for j := range unitValues(bits) {
		if e.isa == avx512 {
			for p := range panels {
				w := e.v(temp + turn%4)
				turn++
				e.unpack(c, j, func(i int) operand.Mem { return at(p, i*64) }, w, nil)
				e.VFMADD213PS(bias(p, 0), scale(p, 0), w)
				for r := range rows {
					e.VFMADD231PS_BCST(a.at(r, 4*j), w, e.acc(panels, r, p, 0))
				}
			}
			continue
		}
		for p := range panels {
			for h := range hs {
				w := e.v(temp + h)
				word := func(i int) operand.Mem { return at(p, i*64+h*32) }
				if held {
					e.unpackHeld(c, j, word, e.v(temp+3+h), w)
				} else {
					e.unpack(c, j, word, w, nil)
				}
				e.VFMADD213PS(bias(p, h), scale(p, h), w)
			}
			for r := range rows {
				x := e.v(temp + 2)
				e.VBROADCASTSS(a.at(r, 4*j), x)
				for h := range hs {
					e.VFMADD231PS(e.v(temp+h), x, e.acc(panels, r, p, h))
				}
			}
		}
	}
	e.advance(a, rows, 4*unitValues(bits))
	e.add(unitBytes(bits), b)
	e.DECQ(units)
	e.JNZ(operand.LabelRef("unit" + tag))
	e.DECQ(groups)
	e.JNZ(operand.LabelRef("group" + tag))
	e.end(t, panels, rows)
}
