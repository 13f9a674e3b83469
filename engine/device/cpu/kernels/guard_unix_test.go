//go:build unix

package kernels

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns n zero floats that end where the next byte may not be touched.
func guarded(t *testing.T, n int) []float32 {
	t.Helper()
	page := unix.Getpagesize()
	size := (4*n + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	if err := unix.Mprotect(mem[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&mem[size-4*n])), n)
}
