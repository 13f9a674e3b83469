package machine

import (
	"errors"
	"syscall"
)

// notPermitted tells EPERM from EACCES.
func notPermitted(err error) bool { return errors.Is(err, syscall.EPERM) }
