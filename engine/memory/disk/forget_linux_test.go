package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget drops what the system keeps of a file in memory.
func forget(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
