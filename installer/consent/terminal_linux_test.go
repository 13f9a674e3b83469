package consent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// emulator is the other end of a real pseudo-terminal: what a terminal program does with what we write and what is
// typed.
type emulator struct {
	ptm, pts *os.File
	// reply is sent for the n-th question about the cursor, from 1.
	reply func(n int) string
}

func newEmulator(t *testing.T, reply func(n int) string) *emulator {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := &emulator{ptm: os.NewFile(uintptr(fd), "ptmx"), reply: reply}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		e.pts, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.pts.Close(); e.ptm.Close() })
	go e.run()
	return e
}

func (e *emulator) run() {
	var all strings.Builder
	asked := 0
	buffer := make([]byte, 1024)
	for {
		n, err := e.ptm.Read(buffer)
		if err != nil {
			return
		}
		all.Write(buffer[:n])
		for ; asked < strings.Count(all.String(), "\x1b[6n"); asked++ {
			e.ptm.WriteString(e.reply(asked + 1))
		}
	}
}

const report = "\x1b[24;80R"

// survey asks twice where the cursor is; a key that arrives together with the answer must count all the same.
func TestCtrlCTogetherWithACursorReportIsNotLost(t *testing.T) {
	for _, row := range []struct {
		name string
		keys map[int]string // typed together with the n-th report; 1 is our own question
		want error
		yes  bool
	}{
		{"at our own test of the terminal", map[int]string{1: "\x03\r"}, ErrInterrupted, false},
		{"at the first question of survey", map[int]string{2: "\x03\r"}, ErrInterrupted, false},
		{"at the second question of survey", map[int]string{3: "\x03\r"}, ErrInterrupted, false},
		{"yes at the second question of survey", map[int]string{3: "yes\r"}, nil, true},
		{"no at the second question of survey", map[int]string{3: "no\r"}, nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newEmulator(t, func(n int) string { return report + row.keys[n] })
			x := &Terminal{In: e.pts, Out: e.pts, Getenv: func(name string) string {
				return map[string]string{"TERM": "xterm"}[name]
			}}
			manner := x.Manner(false)
			if manner != Rich {
				t.Fatalf("the terminal answered, and the manner is %v", manner)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			yes, err := x.Ask(ctx, manner, "Do this?")
			if yes != row.yes || !errors.Is(err, row.want) {
				t.Fatalf("%v %v, want %v %v", yes, err, row.yes, row.want)
			}
		})
	}
}

// survey waits for keys whatever happens; a SIGTERM at the question must end it.
func TestQuestionEndsWithTheContext(t *testing.T) {
	for _, manner := range []Manner{Plain, Rich} {
		e := newEmulator(t, func(int) string { return report })
		cause := errors.New("stopped by SIGTERM")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(300*time.Millisecond, func() { cancel(cause) })
		x := &Terminal{In: e.pts, Out: e.pts, Getenv: os.Getenv}
		if yes, err := x.Ask(ctx, manner, "Do this?"); yes || !errors.Is(err, cause) {
			t.Fatalf("manner %v: %v %v", manner, yes, err)
		}
	}
}

// Keys and signal of one Ctrl-C come by two ways: a no waits for the signal.
func TestSignalAfterTheEmptyLineWins(t *testing.T) {
	e := newEmulator(t, func(int) string { return report })
	cause := errors.New("stopped by Ctrl-C")
	ctx, cancel := context.WithCancelCause(context.Background())
	x := &Terminal{In: e.pts, Out: e.pts, Getenv: os.Getenv, early: []byte("\r")}
	time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	if yes, err := x.Ask(ctx, Plain, "Do this?"); yes || !errors.Is(err, cause) {
		t.Fatalf("%v %v", yes, err)
	}
}
