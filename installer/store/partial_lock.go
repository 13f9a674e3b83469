package store

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// flock is a variable so that a test can be a file system without locks.
var flock = func(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// lockPartial takes the lock file of a digest. proven is false where the file system keeps no locks: it says so, or it
// lets the same lock be taken twice. The caller closes the file to let go. lastWrite is what an earlier holder left.
func lockPartial(home *os.Root, name, subject string) (f *os.File, lastWrite int64, proven bool, err error) {
	if f, err = home.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, 0, false, spaceError(err, name)
	}
	switch err := flock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		holder, _ := readHolder(f)
		for tries := 0; holder == "" && tries < 20; tries++ { // it names itself a moment after it took the lock
			time.Sleep(25 * time.Millisecond)
			holder, _ = readHolder(f)
		}
		f.Close()
		return nil, 0, false, &BusyError{subject, holder}
	case err != nil:
		return f, 0, false, nil
	}
	second, err := home.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		f.Close()
		return nil, 0, false, err
	}
	defer second.Close()
	if err := flock(second); err == nil {
		return f, 0, false, nil
	}
	_, lastWrite = readHolder(f)
	writeHolder(f, lastWrite)
	return f, lastWrite, true, nil
}
