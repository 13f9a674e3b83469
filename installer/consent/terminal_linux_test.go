package consent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
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

	mu  sync.Mutex
	all strings.Builder // what was written to the terminal
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
	asked := 0
	buffer := make([]byte, 1024)
	for {
		n, err := e.ptm.Read(buffer)
		if err != nil {
			return
		}
		e.mu.Lock()
		e.all.Write(buffer[:n])
		questions := strings.Count(e.all.String(), cursorQuery)
		e.mu.Unlock()
		for ; asked < questions; asked++ {
			e.ptm.WriteString(e.reply(asked + 1))
		}
	}
}

func (e *emulator) screen() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all.String()
}

// shows waits until the terminal has been written this often.
func (e *emulator) shows(t *testing.T, text string, times int) {
	t.Helper()
	for range 1000 {
		if strings.Count(e.screen(), text) >= times {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%q was not written %d times:\n%q", text, times, e.screen())
}

const report = "\x1b[24;80R"

// slow is a time after which the terminal counts as one that does not answer.
const slow = 3 * cursorLimit

// later sends each part the line's time after the one before.
func (e *emulator) later(parts ...string) {
	for _, part := range parts {
		time.Sleep(slow)
		e.ptm.WriteString(part)
	}
}

func xterm(e *emulator) *Terminal {
	return &Terminal{In: e.pts, Out: e.pts,
		Getenv: func(name string) string { return map[string]string{"TERM": "xterm"}[name] }}
}

// A report of the cursor that comes long after the question, or in parts, is no part of the answer and is not shown as
// if it had been typed; what was typed before it counts.
func TestLateCursorReportIsNeverAnAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		atOnce string   // sent with the terminal's first breath
		parts  []string // sent later, one after the other
		keys   string   // typed when all were sent
		yes    bool
		want   error
	}{
		"late":                      {"", []string{"", report}, "yes\r", true, nil},
		"late, then Enter":          {"", []string{report}, "\r", false, nil},
		"late and in two parts":     {"", []string{report[:5], report[5:]}, "yes\r", true, nil},
		"half of it at once":        {report[:5], []string{report[5:]}, "yes\r", true, nil},
		"typed ahead of it":         {"", []string{"y", report}, "es\r", true, nil},
		"typed ahead of its half":   {"y" + report[:5], []string{report[5:]}, "es\r", true, nil},
		"the whole answer ahead":    {"", []string{"да\r", report}, "", true, nil},
		"a no ahead":                {"", []string{"no\r", report}, "", false, nil},
		"Ctrl-C ahead":              {"", []string{"\x03"}, "", false, ErrInterrupted},
		"end of input ahead":        {"", []string{"\x04"}, "", false, nil},
		"typed in one piece before": {"", []string{"y" + report}, "\r", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := make(chan struct{})
			var e *emulator
			e = newEmulator(t, func(n int) string {
				go func() { e.later(row.parts...); close(sent) }()
				return row.atOnce
			})
			x := xterm(e)
			if manner := x.Manner(false); manner != Plain {
				t.Fatalf("the manner is %v", manner)
			}
			go func() {
				<-sent
				e.shows(t, "Do this? [y/N]", 1)
				e.ptm.WriteString(row.keys)
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			yes, err := x.Ask(ctx, Plain, "Do this?")
			if yes != row.yes || !errors.Is(err, row.want) {
				t.Errorf("%v %v, want %v %v\n%q", yes, err, row.yes, row.want, e.screen())
			}
			if strings.Contains(e.screen(), "^[") && !strings.HasPrefix(name, "typed ahead") {
				t.Errorf("the report is shown: %q", e.screen())
			}
		})
	}
}

// survey's own questions about the cursor may be answered late and in parts too; keys behind the second part count.
func TestReportToSurveyMayComeLateAndInParts(t *testing.T) {
	for name, row := range map[string]struct {
		keys string
		yes  bool
		want error
	}{"yes": {"yes\r", true, nil}, "no": {"no\r", false, nil}, "Ctrl-C": {"\x03\r", false, ErrInterrupted}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e *emulator
			e = newEmulator(t, func(n int) string {
				switch n {
				case 1:
					return report
				case 2:
					go e.later(report[:1], report[1:])
				case 3:
					go e.later(report[:4], report[4:]+row.keys)
				}
				return ""
			})
			x := xterm(e)
			if manner := x.Manner(false); manner != Rich {
				t.Fatalf("the manner is %v", manner)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if yes, err := x.Ask(ctx, Rich, "Do this?"); yes != row.yes || !errors.Is(err, row.want) {
				t.Errorf("%v %v\n%q", yes, err, e.screen())
			}
		})
	}
}

// Where the terminal answers once and never again, the question is put without drawing, and Ctrl-C ends it.
func TestTerminalThatStopsAnsweringIsAskedPlainly(t *testing.T) {
	for name, row := range map[string]struct {
		early, keys string
		yes         bool
		want        error
	}{
		"yes": {"", "yes\n", true, nil}, "typed ahead": {"ye", "s\n", true, nil},
		"Ctrl-C": {"\x03", "", false, ErrInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEmulator(t, func(n int) string {
				return map[int]string{1: report, 2: row.early}[n]
			})
			x := xterm(e)
			if manner := x.Manner(false); manner != Rich {
				t.Fatalf("the manner is %v", manner)
			}
			if row.keys != "" {
				go func() {
					e.shows(t, "Do this? [y/N]", 2)
					e.ptm.WriteString(row.keys)
				}()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if yes, err := x.Ask(ctx, Rich, "Do this?"); yes != row.yes || !errors.Is(err, row.want) {
				t.Errorf("%v %v\n%q", yes, err, e.screen())
			}
		})
	}
}

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
