package kernels

import (
	"sync/atomic"
	"unsafe"
)

// edgeRows is how many rows of a panel that is only partly wanted are computed at a time.
const edgeRows = 96

// scratch is the working memory of one call. Released memory is kept in a table, so that a warm program allocates none;
// unlike a sync.Pool the table survives a collection.
type scratch struct {
	wide  []float32 // grows to the largest need of row
	block []float32 // 4 panels of blockK inputs
	edge  []float32 // edgeRows rows of a panel
}

// idle holds one for each worker on the machines that we know; more are left to the garbage collector. A goroutine
// looks first at a place of its own, found by the address of its stack: a place shared by two costs each a cache miss.
var idle [256]struct {
	atomic.Pointer[scratch]
	_ [56]byte
}

func place() uintptr {
	var here byte
	return uintptr(unsafe.Pointer(&here)) >> 13
}

func takeScratch() *scratch {
	for i, at := 0, place(); i < len(idle); i++ {
		slot := &idle[(at+uintptr(i))%uintptr(len(idle))]
		if slot.Load() != nil {
			if s := slot.Swap(nil); s != nil {
				return s
			}
		}
	}
	return new(scratch)
}

func (s *scratch) give() {
	for i, at := 0, place(); i < len(idle); i++ {
		slot := &idle[(at+uintptr(i))%uintptr(len(idle))]
		if slot.Load() == nil && slot.CompareAndSwap(nil, s) {
			return
		}
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
