package kernels

import (
	"unsafe"
)

// fusable is false: all products of packed numbers go through expanded.
func (m *Matrix) fusable(int) bool { return false }

func (p *product) fused(rows, lo, hi int) { p.expanded(rows, lo, hi) }

// tile runs a float32 tile of as many panels as it can, at most n, and returns their number.
func (t *tileArgs) tile(n int) int {
	args := (*byte)(unsafe.Pointer(t))
	if n >= 2 && t.rows == 1 {
		tile2NEON(args)
		return 2
	}
	tile1NEON(args)
	return 1
}

// expand writes inputs [k, k+kn) of a panel to dst [kn][16] float32. k is a multiple of blockK, hence of the group.
func (m *Matrix) expand(dst unsafe.Pointer, panel, k, kn int) {
	out := unsafe.Slice((*float32)(dst), kn*OutUnit)
	words := m.words[panel*m.panel:][:m.panel]
	if m.bits == 0 {
		for i := range out {
			out[i] = m.number(words, k*OutUnit+i)
		}
		return
	}
	size := 2*m.scaleWords() + m.codeWords()
	words = words[k/m.group*size:]
	if m.bits == 4 {
		e := expandArgs{dst: dst, src: unsafe.Pointer(&words[0]), groups: kn / m.group, units: m.units(),
			wide: m.wide()}
		expand4NEON((*byte)(unsafe.Pointer(&e)))
		return
	}
	mask := uint32(1)<<m.bits - 1
	for ; len(out) > 0; words, out = words[size:], out[m.group*OutUnit:] {
		codes := words[2*m.scaleWords():]
		for lane := range OutUnit {
			scale, bias := m.number(words, lane), m.number(words[m.scaleWords():], lane)
			for i := range m.group {
				at, shift := i*m.bits/32*OutUnit+lane, i*m.bits%32
				q := codes[at] >> shift
				if shift+m.bits > 32 {
					q |= codes[at+OutUnit] << (32 - shift)
				}
				out[i*OutUnit+lane] = fma32(scale, float32(q&mask), bias)
			}
		}
	}
}
