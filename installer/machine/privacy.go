package machine

import (
	"errors"
	"syscall"
)

// notPermitted separates EPERM from EACCES.
func notPermitted(err error) bool { return errors.Is(err, syscall.EPERM) }
