package kernels

import "unsafe"

// edgeRows is how many rows of a panel that is only partly wanted are computed at a time.
const edgeRows = 96

// scratch is working memory of one call. It comes from a list that keeps what was given back, so that a warm program
// allocates none; unlike a sync.Pool the list survives a collection.
type scratch struct {
	wide  []float32 // grows to the largest need of row
	block []float32 // 4 panels of blockK inputs
	edge  []float32 // edgeRows rows of a panel
}

// idle holds as many as there can be workers on the machines we know; more are left to the collector.
var idle = make(chan *scratch, 256)

func takeScratch() *scratch {
	select {
	case s := <-idle:
		return s
	default:
		return new(scratch)
	}
}

func (s *scratch) give() {
	select {
	case idle <- s:
	default:
	}
}

// row returns n floats with any content, aligned to 64 bytes.
func (s *scratch) row(n int) []float32 {
	if cap(s.wide) < n {
		s.wide = alignedFloats(n)
	}
	return s.wide[:n]
}

// blocks returns room for 4 panels of blockK inputs, aligned to 64 bytes.
func (s *scratch) blocks() []float32 {
	if s.block == nil {
		s.block = alignedFloats(4 * blockK * OutUnit)
	}
	return s.block
}

// edgeRows returns room for edgeRows rows of a panel, aligned to 64 bytes.
func (s *scratch) edgeRows() []float32 {
	if s.edge == nil {
		s.edge = alignedFloats(edgeRows * OutUnit)
	}
	return s.edge
}

func alignedFloats(n int) []float32 {
	w := alignedWords(n)
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(w))), n)
}
