package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// preallocate reserves blocks for the first size bytes. File systems that cannot are no error.
func preallocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
			return nil
		}
		return err
	}
}
