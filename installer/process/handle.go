package process

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Handle is a grip on one process. On Linux it is a pidfd: a signal can only reach the process that was opened,
// whatever happens to its number. On macOS no such thing exists for signals: the identity is read again directly before
// kill(2), and a window of some microseconds remains in which the process could end and another process get its pid.
type Handle struct {
	id Identity
	fd int // pidfd, or -1 where there is none
}

// Open opens the process with exactly this identity. Errors: ErrGone, *ChangedError.
func Open(id Identity) (*Handle, error) {
	if id.PID <= 0 {
		return nil, ErrGone
	}
	fd, err := openPID(id.PID)
	if err != nil {
		return nil, err
	}
	h := &Handle{id: id, fd: fd}
	// The order matters: hold first, compare then. The reverse would leave the window that the hold is there to close.
	if err := h.check(); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Handle) check() error {
	now, err := Observe(h.id.PID)
	if err != nil {
		return err
	}
	if now != h.id {
		return &ChangedError{Want: h.id, Have: now}
	}
	return nil
}

// Identity is what was opened.
func (h *Handle) Identity() Identity { return h.id }

// Signal sends sig to the held process. Errors: ErrGone, *ChangedError, or the system's refusal. SIGKILL is for
// processes of our own only; callers that deal with other people's processes never pass it.
func (h *Handle) Signal(sig syscall.Signal) error {
	if h.fd >= 0 {
		return signalPIDFD(h.fd, sig)
	}
	if err := h.check(); err != nil {
		return err
	}
	err := syscall.Kill(h.id.PID, sig)
	if errors.Is(err, syscall.ESRCH) {
		return ErrGone
	}
	return err
}

// Wait returns nil once the process has ended, or the context's error.
func (h *Handle) Wait(ctx context.Context) error {
	for {
		ended, err := h.waitStep(100 * time.Millisecond)
		if err != nil {
			return err
		}
		if ended {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// poll is the plain way to wait where the system offers nothing better.
func (h *Handle) poll(step time.Duration) (bool, error) {
	running, err := h.id.Running()
	if err != nil || !running {
		return !running, err
	}
	time.Sleep(step)
	return false, nil
}
