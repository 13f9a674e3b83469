package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// preallocate reserves blocks for the first size bytes: in one piece if it can be had, else in several. File systems
// that cannot are no error.
func preallocate(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	missing := size - info.Size()
	if missing <= 0 {
		return nil
	}
	store := unix.Fstore_t{Flags: unix.F_ALLOCATECONTIG | unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE,
		Length: missing}
	if err = unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &store); err == nil {
		return nil
	}
	store.Flags = unix.F_ALLOCATEALL
	err = unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &store)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}
