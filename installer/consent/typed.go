package consent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ctrlC and ctrlD are what a terminal delivers for these keys while it makes no signal and no end of them.
const (
	ctrlC = 0x03
	ctrlD = 0x04
)

// cursorQuery asks a terminal where its cursor is.
const cursorQuery = "\x1b[6n"

// escapeLimit is how long the rest of a report may take after its first byte, which is also the key Esc.
const escapeLimit = 200 * time.Millisecond

// errNoReport says that the terminal did not say within lateLimit where its cursor is.
var errNoReport = errors.New("the terminal does not answer")

// typed is what survey reads from. survey asks the terminal twice where its cursor is and throws away whatever arrives
// in one piece with the answer; a key typed at that moment would be lost, and the Enter after it be taken for a no. So
// no read goes beyond the end of a cursor report, also of one that arrives in parts. It ends with a Ctrl-C, with the
// context, which survey does not know of, and where the terminal does not answer.
type typed struct {
	ctx  context.Context
	file *os.File
	rest []byte // read from the terminal and not handed on yet
	all  []byte // every byte that was read
	err  error  // that ended it; survey continues after an error of its question about the cursor
	owed int    // questions about the cursor without an answer
}

func (t *typed) Fd() uintptr { return t.file.Fd() }

// Read waits for at least one byte. Errors: ErrInterrupted, errNoReport, the context's cause, io.EOF, the system's.
func (t *typed) Read(p []byte) (int, error) {
	for t.err == nil {
		if n := t.ready(); n > 0 {
			n = copy(p, t.rest[:n])
			t.rest = t.rest[n:]
			return n, nil
		}
		t.fill()
	}
	return 0, t.err
}

// ready is how many bytes can be handed on: up to the end of a report, or up to what may be the beginning of one.
func (t *typed) ready() int {
	if _, after, ok := cutCursorReport(t.rest); ok {
		t.owed = max(0, t.owed-1)
		return len(t.rest) - len(after)
	}
	return len(t.rest) - len(beginsReport(t.rest))
}

// fill reads more.
func (t *typed) fill() {
	limit := time.Duration(0)
	switch {
	case t.owed > 0:
		limit = lateLimit
	case len(t.rest) == 1:
		limit = escapeLimit
	}
	var buffer [256]byte
	n, err := readWhile(t.ctx, int(t.file.Fd()), buffer[:], limit)
	switch {
	case err == errLimit && t.owed == 0: // the key Esc
		t.rest = nil
	case err == errLimit:
		t.err = errNoReport
	case err != nil:
		t.err = err
	case bytes.IndexByte(buffer[:n], ctrlC) >= 0:
		t.err = ErrInterrupted
	}
	t.rest, t.all = append(t.rest, buffer[:n]...), append(t.all, buffer[:n]...)
}

// asking is what survey writes to. It counts the questions about the cursor.
type asking struct {
	*os.File
	of *typed
}

func (a asking) Write(p []byte) (int, error) {
	a.of.owed += bytes.Count(p, []byte(cursorQuery))
	return a.File.Write(p)
}

// errLimit says that nothing was read within the limit.
var errLimit = errors.New("nothing was typed")

// readWhile reads what is there, waiting as long as the context lives and, unless it is 0, at most limit. Errors:
// errLimit, the context's cause, io.EOF, the system's.
func readWhile(ctx context.Context, fd int, buffer []byte, limit time.Duration) (int, error) {
	began := time.Now()
	for {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		wait := 100 * time.Millisecond
		if limit > 0 {
			if wait = min(wait, limit-time.Since(began)); wait <= 0 {
				return 0, errLimit
			}
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait.Milliseconds())+1)
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
