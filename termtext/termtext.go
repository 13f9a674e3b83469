// Package termtext makes text that others wrote fit to show: terminal escapes and characters that reorder a line
// must not reach a terminal, a log or a page. It also reads what people save in an editor. It imports nothing of ours.
package termtext

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// harmful reports control characters and those that change the direction of text.
func harmful(r rune) bool {
	return unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Line is s on one line: line ends and tabs become blanks, what is harmful becomes U+FFFD.
func Line(s string) string { return strings.Map(lineRune, s) }

func lineRune(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return ' '
	case harmful(r):
		return utf8.RuneError
	}
	return r
}

// Text is [Line] with the line ends kept.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return lineRune(r)
	}, s)
}

// IsLine reports whether s is valid and [Line] would leave it as it is.
func IsLine(s string) bool { return utf8.ValidString(s) && Line(s) == s }

// Short is [Line] without blanks around it, at most most bytes long and then an ellipsis.
func Short(s string, most int) string {
	s = Line(s)
	if len(s) > most {
		for !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most] + "…"
	}
	return strings.TrimSpace(s)
}

// Name is s for the middle of a sentence: visible characters and blanks only, "?" in the place of others, at most most
// characters and then an ellipsis.
func Name(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n == most {
			b.WriteString("…")
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '?'
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// byteOrderMark is what some editors write at the beginning of a text file.
const byteOrderMark = "\ufeff"

// WithoutMark is a file that a person wrote, without the byte order mark that the editor put there. It shares data.
func WithoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte(byteOrderMark)) }

// Secret is the key or token in a file that a person wrote: its text without byte order mark and blanks around it.
func Secret(data []byte) string { return strings.TrimSpace(string(WithoutMark(data))) }
