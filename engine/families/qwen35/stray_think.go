package qwen35

import "strings"

// thinkEndFilter leaves every </think> out of a text that comes in pieces, also one that only forms when another one
// was left out of its middle. The zero value begins a text.
type thinkEndFilter struct {
	held   []byte // begun tags, one inside the other
	starts []int  // where each begins in held
}

// push takes more of the text and gives what is certain.
func (f *thinkEndFilter) push(s string) string {
	if len(f.held) == 0 && !strings.Contains(s, "<") {
		return s
	}
	var out strings.Builder
	for i := range len(s) {
		c := s[i]
		n := len(f.starts)
		switch {
		case c == '<':
			f.starts = append(f.starts, len(f.held))
			f.held = append(f.held, c)
		case n == 0:
			out.WriteByte(c)
		case c != thinkEnd[len(f.held)-f.starts[n-1]]:
			out.WriteString(f.flush())
			out.WriteByte(c)
		case len(f.held)-f.starts[n-1]+1 == len(thinkEnd):
			f.held, f.starts = f.held[:f.starts[n-1]], f.starts[:n-1]
		default:
			f.held = append(f.held, c)
		}
	}
	return out.String()
}

// flush gives what was held when no tag can follow.
func (f *thinkEndFilter) flush() string {
	s := string(f.held)
	f.held, f.starts = f.held[:0], f.starts[:0]
	return s
}

// lineState follows the lines of a text: where one begins, and which are in a code fence. The zero value begins one.
type lineState struct {
	line  []byte // of the running line, its first bytes
	dirty bool   // the line has more than line holds
	fence string // that is open, "```" or longer; empty: none
}

// longestFence is how much of a line is looked at.
const longestFence = 64

func (l *lineState) push(s string) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n':
			l.end()
		case len(l.line) < longestFence:
			l.line = append(l.line, c)
		default:
			l.dirty = true
		}
	}
}

// begins reports whether a line begins here.
func (l *lineState) begins() bool { return len(l.line) == 0 }

// fenced reports whether the running line is inside a code fence.
func (l *lineState) fenced() bool { return l.fence != "" }

func (l *lineState) end() {
	line := strings.TrimSpace(string(l.line))
	run := line
	if line != "" && (line[0] == '`' || line[0] == '~') {
		run = line[:len(line)-len(strings.TrimLeft(line, line[:1]))]
	} else {
		run = ""
	}
	switch {
	case len(run) < 3:
	case l.fence == "":
		if run[0] == '~' || !strings.Contains(line[len(run):], "`") { // otherwise code in a line
			l.fence = run
		}
	case strings.HasPrefix(run, l.fence) && run == line && !l.dirty:
		l.fence = ""
	}
	l.line, l.dirty = l.line[:0], false
}
