package kernels

import "unsafe"

// fused multiplies at most fusedRows rows, unpacking weights on the way.
func (p *product) fused(rows, lo, hi int) {
	m := p.m
	words := unsafe.Pointer(&m.words[0])
	t := tileArgs{
		cStride: p.cStride, a: p.a, aStride: p.aStride, bPanel: 4 * m.panel, k: m.in, rows: rows,
		wide: m.wide(),
	}
	if m.bits != 0 {
		t.groups, t.units = m.in/m.group, m.units()
	}
	for at := lo; at < hi; {
		t.b, t.c = unsafe.Add(words, 4*at*m.panel), unsafe.Add(p.c, 4*OutUnit*(at-lo))
		var n int
		if active == AVX512 {
			n = m.fused512(&t, hi-at)
		} else {
			n = m.fused256(&t, hi-at)
		}
		at += n
	}
}

// fused512 runs as many panels as it can, at most n, and returns their number. Four or three panels keep the units busy
// through the latency of a chain, two do not: 6 are done as 3 and 3.
func (m *Matrix) fused512(t *tileArgs, n int) int {
	args := (*byte)(unsafe.Pointer(t))
	switch {
	case n == 4 || n >= 7:
		switch {
		case m.bits == 4:
			fused4x4AVX512(args)
		case m.bits == 8:
			fused8x4AVX512(args)
		case m.dtype == BF16:
			fusedBF16x4AVX512(args)
		default:
			fusedF16x4AVX512(args)
		}
		return 4
	case n >= 3:
		switch {
		case m.bits == 4:
			fused4x3AVX512(args)
		case m.bits == 8:
			fused8x3AVX512(args)
		case m.dtype == BF16:
			fusedBF16x3AVX512(args)
		default:
			fusedF16x3AVX512(args)
		}
		return 3
	case n == 2:
		switch {
		case m.bits == 4:
			fused4x2AVX512(args)
		case m.bits == 8:
			fused8x2AVX512(args)
		case m.dtype == BF16:
			fusedBF16x2AVX512(args)
		default:
			fusedF16x2AVX512(args)
		}
		return 2
	}
	switch {
	case m.bits == 4:
		fused4x1AVX512(args)
	case m.bits == 8:
		fused8x1AVX512(args)
	case m.dtype == BF16:
		fusedBF16x1AVX512(args)
	default:
		fusedF16x1AVX512(args)
	}
	return 1
}

// fused256 is fused512 for AVX2.
func (m *Matrix) fused256(t *tileArgs, n int) int {
	args := (*byte)(unsafe.Pointer(t))
	if n >= 2 && t.rows == 1 {
		switch {
		case m.bits == 4:
			fused4x2AVX2(args)
		case m.bits == 8:
			fused8x2AVX2(args)
		case m.dtype == BF16:
			fusedBF16x2AVX2(args)
		default:
			fusedF16x2AVX2(args)
		}
		return 2
	}
	switch {
	case m.bits == 4:
		fused4x1AVX2(args)
	case m.bits == 8:
		fused8x1AVX2(args)
	case m.dtype == BF16:
		fusedBF16x1AVX2(args)
	default:
		fusedF16x1AVX2(args)
	}
	return 1
}
