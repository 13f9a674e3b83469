//go:build unix

package cpurun

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Guarded is memory between two pages that cannot be touched. It begins at a multiple of 16 bytes and ends as close to
// the page after it as that allows; the few bytes between are watched by Check.
type Guarded struct {
	mapping, tail []byte
	data          []byte
}

// Guard makes n bytes, all 0xFF: NaN in every float format.
func Guard(n int) (*Guarded, error) {
	page := syscall.Getpagesize()
	inner := (n + 15) / 16 * 16
	pages := (max(inner, 1) + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, pages+2*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("%d bytes between guard pages: %w", n, err)
	}
	for _, guard := range [][]byte{m[:page], m[page+pages:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			syscall.Munmap(m)
			return nil, fmt.Errorf("guard page: %w", err)
		}
	}
	usable := m[page : page+pages]
	for i := range usable {
		usable[i] = 0xFF
	}
	from := pages - inner
	return &Guarded{mapping: m, data: usable[from : from+n : from+n], tail: usable[from+n:]}, nil
}

// Pointer is where the data begins.
func (g *Guarded) Pointer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(g.data)) }

// Check reports whether the bytes between the data and the guard page were written.
func (g *Guarded) Check() error {
	for i, b := range g.tail {
		if b != 0xFF {
			return fmt.Errorf("byte %d after a buffer of %d was written", i, len(g.data))
		}
	}
	return nil
}

// Release gives the memory back.
func (g *Guarded) Release() { syscall.Munmap(g.mapping) }

// Slice shows the data as elements of T.
func Slice[T any](g *Guarded) []T {
	var t T
	return unsafe.Slice((*T)(g.Pointer()), len(g.data)/int(unsafe.Sizeof(t)))
}
