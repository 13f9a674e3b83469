package store

import (
	"errors"
	"fmt"
	"syscall"

	"slipway/fault"
	"slipway/manifests"
)

// IntegrityError: the bytes available are not those that the lock names.
type IntegrityError struct {
	Path            string
	Expected, Found manifests.Digest
	ExpectedBytes   int64
	FoundBytes      int64
	Kept            string // where the wrong bytes lie now, relative to the home; "" when they were not kept
}

func (e *IntegrityError) Error() string {
	if e.ExpectedBytes != e.FoundBytes {
		return fmt.Sprintf("%s: expected %d bytes, found %d", e.Path, e.ExpectedBytes, e.FoundBytes)
	}
	return fmt.Sprintf("%s: expected %s, found %s", e.Path, e.Expected, e.Found)
}

// Fault: see package fault.
func (e *IntegrityError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.RepeatFixed}
}

// NoSpaceError: the volume of the home has no room. What arrived is kept. Needed and Free are 0 when a write failed in
// the middle and nothing was computed.
type NoSpaceError struct {
	Path                   string
	NeededBytes, FreeBytes int64
	Err                    error
}

func (e *NoSpaceError) Error() string {
	if e.NeededBytes > 0 {
		return fmt.Sprintf("no space for %s: %d bytes are needed, %d are free", e.Path, e.NeededBytes, e.FreeBytes)
	}
	return fmt.Sprintf("no space left while writing %s; what arrived is kept", e.Path)
}

// Fault: see package fault.
func (e *NoSpaceError) Fault() fault.Fault {
	return fault.Fault{Class: fault.NoSpace, Step: fault.FreeSpace}
}

func (e *NoSpaceError) Unwrap() error { return e.Err }

// spaceError turns "no space", "over quota" and "file too large" into a NoSpaceError.
func spaceError(err error, name string) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return &NoSpaceError{Path: name, Err: err}
	}
	return err
}

// BusyError: another process works on the same file.
type BusyError struct {
	Path   string
	Holder string // "pid 123", or "" when the holder left no name
}

func (e *BusyError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("%q is being fetched by another process", e.Path)
	}
	return fmt.Sprintf("%q is being fetched by another process (%s)", e.Path, e.Holder)
}

// Fault: see package fault.
func (e *BusyError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Locked, Step: fault.WaitForProgram}
}

// NotInLockError: a name that the lock does not have.
type NotInLockError struct{ Path string }

func (e *NotInLockError) Error() string { return e.Path + " is not in the lock" }

// ForeignError: something that this program did not put there is where a file or folder of ours must be.
type ForeignError struct{ Path, Why string }

func (e *ForeignError) Error() string { return e.Path + " " + e.Why }

// Fault: see package fault.
func (e *ForeignError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Stale, Step: fault.MoveAway}
}

// LockConflictError: an installed model's lock says otherwise about the same revision. A revision never changes, so one
// of the two is wrong.
type LockConflictError struct{ Path, Why string }

func (e *LockConflictError) Error() string {
	return "two locks of one revision disagree: " + e.Path + " " + e.Why
}

// Fault: see package fault.
func (e *LockConflictError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Stale, Step: fault.Relock}
}
