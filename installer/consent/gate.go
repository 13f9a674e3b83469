package consent

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
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

// Terminal is where questions go and answers come from.
type Terminal struct {
	In, Out *os.File // Out is standard error: standard output is for results
	Getenv  func(string) string
	early   []byte // typed before the first question, read while the terminal was tested
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
	if _, err := t.Out.WriteString("\x1b[6n"); err != nil {
		return false
	}
	deadline := time.Now().Add(cursorLimit)
	var got []byte
	for {
		left := time.Until(deadline)
		if left <= 0 {
			t.early = append(t.early, got...)
			return false
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err == unix.EINTR {
			continue
		}
		if err != nil || ready == 0 {
			t.early = append(t.early, got...)
			return false
		}
		var buffer [64]byte
		n, err := unix.Read(fd, buffer[:])
		if err != nil || n <= 0 {
			t.early = append(t.early, got...)
			return false
		}
		got = append(got, buffer[:n]...)
		if before, after, ok := cutCursorReport(got); ok {
			t.early = append(append(t.early, before...), after...)
			return true
		}
	}
}

// cutCursorReport finds ESC [ row ; column R in what arrived and returns what stood before and after it.
func cutCursorReport(b []byte) (before, after []byte, ok bool) {
	for i := range b {
		if b[i] != 0x1b || i+1 >= len(b) || b[i+1] != '[' {
			continue
		}
		j, semicolons, digits := i+2, 0, 0
		for j < len(b) && (b[j] >= '0' && b[j] <= '9' || b[j] == ';') {
			if b[j] == ';' {
				semicolons++
			} else {
				digits++
			}
			j++
		}
		if j < len(b) && b[j] == 'R' && semicolons == 1 && digits >= 2 {
			return b[:i], b[j+1:], true
		}
	}
	return nil, nil, false
}
