// Package alone keeps test packages apart that look at every model server of the machine: each would take the other's
// questions for a client at work, and rightly so.
package alone

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Enter waits until no other such test runs on this machine. The lock ends with leave, or with the process.
func Enter() (leave func(), err error) {
	path := filepath.Join(os.TempDir(), "slipway-neighbor-tests-"+strconv.Itoa(os.Getuid()))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != syscall.EINTR {
			f.Close()
			return nil, err
		}
	}
}
