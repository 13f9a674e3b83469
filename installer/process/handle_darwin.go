package process

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func openPID(int) (int, error) { return -1, nil }

func signalPIDFD(int, syscall.Signal) error { panic("no pidfd on macOS") }

// waitStep waits by kqueue: EVFILT_PROC with NOTE_EXIT works for processes that are not children, and registering for
// an ended process fails with ESRCH, so no exit is missed. After registering, the identity is compared, so that a
// successor under the same number is not waited for.
func (h *Handle) waitStep(step time.Duration) (bool, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return h.poll(step)
	}
	defer unix.Close(queue)
	change := unix.Kevent_t{Ident: uint64(h.id.PID), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT,
		Fflags: unix.NOTE_EXIT}
	if _, err := unix.Kevent(queue, []unix.Kevent_t{change}, nil, nil); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return true, nil
		}
		return h.poll(step)
	}
	running, err := h.id.Running()
	if err != nil || !running {
		return !running, err
	}
	events := make([]unix.Kevent_t, 1)
	timeout := unix.NsecToTimespec(step.Nanoseconds())
	n, err := unix.Kevent(queue, nil, events, &timeout)
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return n == 1, err
}

// Close lets go. The process is not touched.
func (h *Handle) Close() {}
