package consent

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ctrlC is what a terminal delivers for Ctrl-C while it makes no signal of it.
const ctrlC = 0x03

// typed is what survey reads from. survey asks the terminal twice where its cursor is and throws away whatever arrives
// in one piece with the answer; a Ctrl-C typed at that moment would be lost, and the Enter after it be taken for a no.
// So no read goes beyond the end of a cursor report. It ends with the context, which survey does not know of.
type typed struct {
	ctx  context.Context
	file *os.File
	rest []byte // read from the terminal and not handed on yet
}

func (t *typed) Fd() uintptr { return t.file.Fd() }

// Read waits for at least one byte. Errors: the context's cause, io.EOF, the system's.
func (t *typed) Read(p []byte) (int, error) {
	if len(t.rest) == 0 {
		var buffer [256]byte
		n, err := readWhile(t.ctx, int(t.file.Fd()), buffer[:])
		if err != nil {
			return 0, err
		}
		t.rest = append(t.rest, buffer[:n]...)
	}
	n := len(t.rest)
	if _, after, ok := cutCursorReport(t.rest); ok {
		n -= len(after)
	}
	n = copy(p, t.rest[:n])
	t.rest = t.rest[n:]
	return n, nil
}

// readWhile reads what is there, waiting as long as the context lives. Errors: the context's cause, io.EOF, the
// system's.
func readWhile(ctx context.Context, fd int, buffer []byte) (int, error) {
	for {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		if err == unix.EINTR || err == nil && ready == 0 {
			continue
		}
		if err != nil {
			return 0, err
		}
		n, err := unix.Read(fd, buffer)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err == unix.EIO: // the terminal is gone
			return 0, io.EOF
		case err == nil && n == 0:
			return 0, io.EOF
		}
		return n, err
	}
}
