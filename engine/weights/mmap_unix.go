//go:build unix

package weights

import (
	"os"
	"syscall"
)

const canMap = true

// mapFile maps size bytes of f read-only and shared, so that several processes use the same memory.
func mapFile(f *os.File, size int) ([]byte, func() error, error) {
	data, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}
