package consent

import (
	"context"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
)

// Manner is how a person can be asked.
type Manner int

const (
	NoTerminal Manner = iota // nothing can be asked: consent must come as a flag or a digest
	Plain                    // a line is printed, a line is read
	Rich                     // the terminal answers, survey may draw
)

// cursorLimit is how long a terminal may take to say where its cursor is. A pseudo-terminal without an emulator after
// it never answers, and survey waits for that answer for ever.
const cursorLimit = 200 * time.Millisecond

// lateLimit is how long an answer that did not come in time is waited for at the question.
const lateLimit = 2 * time.Second

// Terminal is where questions go and answers come from.
type Terminal struct {
	In, Out *os.File // Out is standard error: standard output is for results
	Getenv  func(string) string
	early   []byte // typed before the first question, read while the terminal was tested
	owed    bool   // the terminal was asked for its cursor and has not answered yet
}

// Manner decides how to ask. noInput is set by --yes, --json and --no-input.
func (t *Terminal) Manner(noInput bool) Manner {
	if noInput || !term.IsTerminal(int(t.In.Fd())) || !term.IsTerminal(int(t.Out.Fd())) {
		return NoTerminal
	}
	for _, name := range []string{"CI", "AI_AGENT", "AGENT"} {
		if t.Getenv(name) != "" {
			return Plain
		}
	}
	if kind := t.Getenv("TERM"); kind == "" || kind == "dumb" {
		return Plain
	}
	if !t.cursorAnswers() {
		return Plain
	}
	return Rich
}

// cursorAnswers asks the terminal for its cursor and waits a moment. Anything else that arrives was typed by a person
// and is kept for the first question.
func (t *Terminal) cursorAnswers() bool {
	fd := int(t.In.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return false
	}
	defer term.Restore(fd, before)
	if _, err := t.Out.WriteString(cursorQuery); err != nil {
		return false
	}
	t.owed = true
	deadline := time.Now().Add(cursorLimit)
	for t.owed && time.Until(deadline) > 0 {
		if !t.readEarly(context.Background(), time.Until(deadline)) {
			return false
		}
	}
	return !t.owed
}

// readEarly reads what arrives before the limit and takes the report that is owed out of it.
func (t *Terminal) readEarly(ctx context.Context, limit time.Duration) bool {
	var buffer [64]byte
	n, err := readWhile(ctx, int(t.In.Fd()), buffer[:], limit)
	if err != nil {
		return false
	}
	t.early = append(t.early, buffer[:n]...)
	if before, after, ok := cutCursorReport(t.early); ok {
		t.early, t.owed = append(before, after...), false
	}
	return true
}

// awaitReport gives a terminal that answers late, as behind a slow line, the time for its report, so that it is not
// shown as if it had been typed. The first key ends the wait; what was typed is shown.
func (t *Terminal) awaitReport(ctx context.Context) {
	fd := int(t.In.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return
	}
	defer term.Restore(fd, before)
	deadline := time.Now().Add(lateLimit)
	keys := func() []byte { return t.early[:len(t.early)-len(beginsReport(t.early))] }
	for t.owed && len(keys()) == 0 && time.Until(deadline) > 0 {
		if !t.readEarly(ctx, time.Until(deadline)) {
			break
		}
	}
	shown := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, string(keys()))
	t.Out.WriteString(shown)
}
