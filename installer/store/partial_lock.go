package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// flock is a variable so that a test can be a file system without locks.
var flock = func(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// lockPartial takes the lock file of a digest. proven is false where the file system keeps no locks: it says so, or it
// lets the same lock be taken twice. The caller closes the file to let go.
func lockPartial(home *os.Root, name, subject string) (f *os.File, proven bool, err error) {
	if f, err = home.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, false, spaceError(err, name)
	}
	switch err := flock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		holder, _ := io.ReadAll(io.LimitReader(f, 64))
		f.Close()
		return nil, false, &BusyError{subject, strings.TrimSpace(string(holder))}
	case err != nil:
		return f, false, nil
	}
	second, err := home.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		f.Close()
		return nil, false, err
	}
	defer second.Close()
	if err := flock(second); err == nil {
		return f, false, nil
	}
	f.Truncate(0)
	f.WriteAt([]byte(fmt.Sprintf("pid %d\n", os.Getpid())), 0)
	return f, true, nil
}
