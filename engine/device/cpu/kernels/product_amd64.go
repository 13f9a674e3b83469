package kernels

import "unsafe"

// fusedRows is the largest number of rows for which weights are unpacked inside the product. With more, a block of
// weights is expanded to float32 once for all rows.
const fusedRows = 4

// fusable says whether fused has a kernel.
func (m *Matrix) fusable(rows int) bool {
	return rows <= fusedRows && (m.bits == 4 || m.bits == 8 || m.bits == 0 && m.dtype != F32)
}

// widest is the most panels that a float32 tile takes for so many rows.
func widest(rows int) int {
	switch {
	case active == AVX512 || rows == 1:
		return 4
	case rows == 2:
		return 2
	}
	return 1
}

// tile runs a float32 tile of as many panels as it can, at most n, and returns their number.
func (t *tileArgs) tile(n int) int {
	n = min(n, widest(t.rows))
	args := (*byte)(unsafe.Pointer(t))
	if active == AVX512 {
		switch n {
		case 1:
			tile1AVX512(args)
		case 2:
			tile2AVX512(args)
		case 3:
			tile3AVX512(args)
		default:
			tile4AVX512(args)
		}
		return n
	}
	switch n {
	case 1:
		tile1AVX2(args)
	case 2, 3:
		n = 2
		tile2AVX2(args)
	default:
		tile4AVX2(args)
	}
	return n
}

// expand writes inputs [k, k+kn) of a panel to dst [kn][16] float32. k is a multiple of blockK, hence of the group.
func (m *Matrix) expand(dst unsafe.Pointer, panel, k, kn int) {
	if m.bits == 0 {
		e := expandArgs{dst: dst, src: unsafe.Pointer(&m.words[panel*m.panel+k*OutUnit/2]), groups: kn}
		args := (*byte)(unsafe.Pointer(&e))
		switch {
		case m.dtype == BF16 && active == AVX512:
			expandBF16AVX512(args)
		case m.dtype == BF16:
			expandBF16AVX2(args)
		case active == AVX512:
			expandF16AVX512(args)
		default:
			expandF16AVX2(args)
		}
		return
	}
	group := k / m.group * (2*m.scaleWords() + m.codeWords())
	e := expandArgs{dst: dst, src: unsafe.Pointer(&m.words[panel*m.panel+group]), groups: kn / m.group,
		units: m.units(), wide: m.wide()}
	args := (*byte)(unsafe.Pointer(&e))
	if active == AVX512 {
		switch m.bits {
		case 2:
			expand2AVX512(args)
		case 3:
			expand3AVX512(args)
		case 4:
			expand4AVX512(args)
		case 5:
			expand5AVX512(args)
		case 6:
			expand6AVX512(args)
		case 8:
			expand8AVX512(args)
		}
		return
	}
	switch m.bits {
	case 2:
		expand2AVX2(args)
	case 3:
		expand3AVX2(args)
	case 4:
		expand4AVX2(args)
	case 5:
		expand5AVX2(args)
	case 6:
		expand6AVX2(args)
	case 8:
		expand8AVX2(args)
	}
}
