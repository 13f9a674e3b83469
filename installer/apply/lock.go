package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"slipway/atomicfile"
	"slipway/fault"
	"slipway/installer/process"
)

// Paths of the state lock, below the home.
const (
	lockPath   = "state/lock"
	holderPath = "state/lock-holder.json"
)

// Holder says who holds the state lock. A holder whose process is gone, or whose pid belongs to another process by now
// (start time, boot), is dead, and its lock is taken over.
type Holder struct {
	Process process.Identity `json:"process"`
	Command string           `json:"command"`
	Since   time.Time        `json:"since"`
}

// LockedError: a live process works on this home.
type LockedError struct{ Holder Holder }

func (e *LockedError) Error() string {
	if e.Holder.Process.PID == 0 {
		return "another slipway works on this home; it has not noted yet which process it is"
	}
	return fmt.Sprintf("another slipway works on this home: pid %d (%s), since %s",
		e.Holder.Process.PID, e.Holder.Command, e.Holder.Since.Local().Format("15:04:05"))
}

// Fault: see package fault.
func (e *LockedError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Locked, Step: fault.WaitForSlipway}
}

// holderLimit is how long a lock that is held may be without the record of a living holder: who has just taken it
// writes the record next, and who has just removed the record lets go next.
const holderLimit = time.Second

// Lock is the held state lock.
type Lock struct {
	home  *Home
	flock *flock.Flock
	// DeadHolder is who held the lock and ended without giving it back, nil when nobody did.
	DeadHolder *Holder
}

// Lock takes the state lock or fails with *LockedError, which names the holder as soon as its record is there. The
// kernel's lock decides; where the file system has none (exFAT, SMB) the holder record does, and then a record whose
// process runs is a holder.
func (h *Home) Lock(command string) (*Lock, error) {
	file, err := h.Root.OpenFile(lockPath, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ours, err := file.Stat()
	file.Close()
	if err != nil {
		return nil, err
	}
	lock := &Lock{home: h, flock: flock.New(filepath.Join(h.Path, lockPath))}
	got, err := lock.flock.TryLock()
	for deadline := time.Now().Add(holderLimit); err == nil && !got; got, err = lock.flock.TryLock() {
		if holder := h.Busy(); holder != nil {
			return nil, &LockedError{*holder}
		}
		if time.Now().After(deadline) {
			return nil, &LockedError{}
		}
		time.Sleep(10 * time.Millisecond)
	}
	held, heldErr := h.readHolder()
	switch {
	case err == nil:
		if now, err := os.Stat(filepath.Join(h.Path, lockPath)); err != nil || !os.SameFile(now, ours) {
			lock.flock.Close()
			return nil, &HomeError{Path: filepath.Join(h.Path, lockPath), Why: "is not the file that lies " +
				"below the home",
				Conflict: true}
		}
		if heldErr == nil {
			lock.DeadHolder = &held
		}
	case errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOSYS):
		if heldErr == nil {
			now, err := process.Observe(held.Process.PID)
			if err == nil && now.SameProcess(held.Process) || err != nil && !errors.Is(err, process.ErrGone) {
				return nil, &LockedError{held}
			}
			lock.DeadHolder = &held
		}
	default:
		return nil, err
	}
	self, err := process.Self()
	if err == nil {
		err = h.writeHolder(Holder{Process: self, Command: command, Since: time.Now()})
	}
	if err != nil {
		lock.flock.Close()
		return nil, err
	}
	return lock, nil
}

// Release gives the lock back. The file stays, so that two processes never lock two files of one name.
func (l *Lock) Release() {
	l.home.Root.Remove(holderPath)
	l.flock.Close()
}

// Busy reads who works on the home, without taking the lock. nil: none.
func (h *Home) Busy() *Holder {
	held, err := h.readHolder()
	if err != nil {
		return nil
	}
	if now, err := process.Observe(held.Process.PID); err != nil || !now.SameProcess(held.Process) {
		return nil
	}
	return &held
}

func (h *Home) writeHolder(holder Holder) error {
	data, err := json.Marshal(holder)
	if err != nil {
		return err
	}
	return atomicfile.Replace(h.Root, holderPath, append(data, '\n'), 0o600)
}

func (h *Home) readHolder() (Holder, error) {
	data, err := h.Root.ReadFile(holderPath)
	if err != nil {
		return Holder{}, err
	}
	var holder Holder
	if err := json.Unmarshal(data, &holder); err != nil {
		return Holder{}, fs.ErrInvalid
	}
	return holder, nil
}
