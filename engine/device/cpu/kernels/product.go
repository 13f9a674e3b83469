//go:build amd64 || arm64

package kernels

import "unsafe"

// unblockedRows is up to how many rows float32 panels are read through from end to end, because each weight is used too
// few times to be kept in a cache.
const unblockedRows = 4

func (m *Matrix) mul(y []float32, yStride int, x []float32, xStride int, rows, outLo, outHi int) {
	if active == Plain {
		m.mulPlain(y, yStride, x, xStride, rows, outLo, outHi)
		return
	}
	p := product{m: m, a: unsafe.Pointer(&x[0]), aStride: 4 * xStride}
	lo, hi := outLo, outHi
	if lo%OutUnit != 0 {
		end := min(hi, (lo/OutUnit+1)*OutUnit)
		p.edge(y, yStride, rows, lo, end)
		lo = end
	}
	if hi%OutUnit != 0 && lo < hi {
		begin := hi / OutUnit * OutUnit
		p.edge(y, yStride, rows, begin, hi)
		hi = begin
	}
	if lo < hi {
		p.c, p.cStride = unsafe.Pointer(&y[lo]), 4*yStride
		p.panels(rows, lo/OutUnit, hi/OutUnit)
	}
}

// product is a Mul under way: c and a are the first row's outputs and inputs, strides in bytes.
type product struct {
	m                *Matrix
	c, a             unsafe.Pointer
	cStride, aStride int
}

// edge computes outputs [lo, hi) of one panel by way of a whole panel in scratch.
func (p *product) edge(y []float32, yStride, rows, lo, hi int) {
	panel := lo / OutUnit
	a, s := p.a, takeScratch()
	for done := 0; done < rows; done += edgeRows {
		n := min(edgeRows, rows-done)
		p.a = unsafe.Add(a, done*p.aStride)
		out := s.edgeRows()
		p.c, p.cStride = unsafe.Pointer(&out[0]), 4*OutUnit
		p.panels(n, panel, panel+1)
		for r := range n {
			copy(y[(done+r)*yStride+lo:(done+r)*yStride+hi], out[r*OutUnit+lo-panel*OutUnit:])
		}
	}
	p.a = a
	s.give()
}

// panels computes whole panels [lo, hi); p.c is the place of panel lo.
func (p *product) panels(rows, lo, hi int) {
	m := p.m
	switch {
	case m.fusable(rows):
		p.fused(rows, lo, hi)
	case m.bits == 0 && m.dtype == F32:
		p.direct(rows, lo, hi)
	default:
		p.expanded(rows, lo, hi)
	}
}

// tileArgs are the arguments of the assembly kernels; the generator knows the fields by their order. Strides in bytes.
type tileArgs struct {
	c       unsafe.Pointer // outputs: rows of float32, cStride apart
	a       unsafe.Pointer // inputs: rows of float32, aStride apart
	b       unsafe.Pointer // weights: for k, 16 float32 a panel
	cStride int
	aStride int
	bStep   int // from k to k+1
	bPanel  int // from panel to panel
	k       int
	rows    int
	resume  int // 0: sums begin at +0; 1: at c
	groups  int // of a quantised matrix
	units   int // runs of codes in a group that fill whole words
	wide    int // 1: scales and biases are float32, 0: bfloat16
}

// direct multiplies with float32 panels where they lie.
func (p *product) direct(rows, lo, hi int) {
	m := p.m
	block := m.in
	if rows > unblockedRows {
		block = blockK
	}
	words := unsafe.Pointer(&m.words[0])
	for at := lo; at < hi; {
		n := 0
		for k := 0; k < m.in; k += block {
			t := tileArgs{
				c: unsafe.Add(p.c, (at-lo)*4*OutUnit), cStride: p.cStride,
				a: unsafe.Add(p.a, 4*k), aStride: p.aStride,
				b: unsafe.Add(words, 4*(at*m.panel+k*OutUnit)), bStep: 4 * OutUnit, bPanel: 4 * m.panel,
				k: min(block, m.in-k), rows: rows, resume: min(k, 1),
			}
			n = t.tile(hi - at)
		}
		at += n
	}
}

// expandArgs are the arguments of the kernels that expand one panel to float32; the generator knows the fields by their
// order.
type expandArgs struct {
	dst    unsafe.Pointer // [k][16] float32
	src    unsafe.Pointer
	groups int // of a quantised matrix; of a dense one the number of k
	units  int
	wide   int
}

// expanded multiplies with panels that are expanded to float32 in scratch, blockK inputs at a time.
func (p *product) expanded(rows, lo, hi int) {
	m := p.m
	s := takeScratch()
	scratch := unsafe.Pointer(&s.blocks()[0])
	for at := lo; at < hi; {
		n := min(hi-at, 4)
		for k := 0; k < m.in; k += blockK {
			kn := min(blockK, m.in-k)
			for i := range n {
				m.expand(unsafe.Add(scratch, i*4*OutUnit*blockK), at+i, k, kn)
			}
			for i := 0; i < n; {
				t := tileArgs{
					c: unsafe.Add(p.c, (at+i-lo)*4*OutUnit), cStride: p.cStride,
					a: unsafe.Add(p.a, 4*k), aStride: p.aStride,
					b: unsafe.Add(scratch, i*4*OutUnit*blockK), bStep: 4 * OutUnit, bPanel: 4 * OutUnit * blockK,
					k: kn, rows: rows, resume: min(k, 1),
				}
				i += t.tile(n - i)
			}
		}
		at += n
	}
	s.give()
}

// units returns the runs of codes in a group that fill whole words.
func (m *Matrix) units() int {
	switch m.bits {
	case 3, 5:
		return m.group / 32
	case 2, 6:
		return m.group / 16
	case 4:
		return m.group / 8
	}
	return m.group / 4
}

func (m *Matrix) wide() int {
	if m.dtype == F32 {
		return 1
	}
	return 0
}
