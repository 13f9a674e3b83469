package process

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openPID returns a pidfd, or -1 on kernels before 5.3 and under seccomp filters that refuse the call.
func openPID(pid int) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ESRCH):
		return -1, ErrGone
	default:
		return -1, nil
	}
}

func signalPIDFD(fd int, sig syscall.Signal) error {
	err := unix.PidfdSendSignal(fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}

func (h *Handle) waitStep(step time.Duration) (bool, error) {
	if h.fd < 0 {
		return h.poll(step)
	}
	fds := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, int(step.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return n == 1, err
}

// Close lets go. The process is not touched.
func (h *Handle) Close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
		h.fd = -1
	}
}
