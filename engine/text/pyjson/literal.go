package pyjson

import (
	"strings"
	"unicode/utf8"
)

// Literal turns a Python literal (dictionaries, lists, tuples, strings, numbers, True, False, None) into JSON. Models
// write them where JSON was asked for.
func Literal(s string) (string, bool) {
	l := literalReader{rest: s}
	if !l.value(100) {
		return "", false
	}
	l.space()
	return l.out.String(), l.rest == ""
}

type literalReader struct {
	rest string
	out  strings.Builder
}

func (l *literalReader) space() { l.rest = strings.TrimLeft(l.rest, " \t\r\n") }

func (l *literalReader) take(word string) bool {
	after, found := strings.CutPrefix(l.rest, word)
	if found {
		l.rest = after
	}
	return found
}

func (l *literalReader) value(depth int) bool {
	l.space()
	if depth == 0 || l.rest == "" {
		return false
	}
	switch c := l.rest[0]; c {
	case '{':
		return l.items("{", "}", func() bool {
			l.space()
			if l.rest == "" || l.rest[0] != '\'' && l.rest[0] != '"' || !l.quoted() {
				return false
			}
			l.space()
			l.out.WriteByte(':')
			return l.take(":") && l.value(depth-1)
		})
	case '[':
		return l.items("[", "]", func() bool { return l.value(depth - 1) })
	case '(':
		return l.items("(", ")", func() bool { return l.value(depth - 1) })
	case '\'', '"':
		return l.quoted()
	}
	for python, json := range map[string]string{"True": "true", "False": "false", "None": "null", "true": "true",
		"false": "false", "null": "null"} {
		if l.take(python) {
			l.out.WriteString(json)
			return true
		}
	}
	end := 0
	for end < len(l.rest) && strings.IndexByte("+-.0123456789eE", l.rest[end]) >= 0 {
		end++
	}
	number, ok := Number(l.rest[:end], true)
	l.out.WriteString(number)
	l.rest = l.rest[end:]
	return ok
}

// items reads a bracketed list; a comma may follow the last item.
func (l *literalReader) items(open, closing string, item func() bool) bool {
	l.take(open)
	if open == "(" {
		l.out.WriteByte('[')
	} else {
		l.out.WriteString(open)
	}
	for first := true; ; first = false {
		l.space()
		if l.take(closing) {
			break
		}
		if !first {
			l.out.WriteByte(',')
		}
		if !item() {
			return false
		}
		l.space()
		if !l.take(",") && !strings.HasPrefix(l.rest, closing) {
			return false
		}
	}
	if closing == ")" {
		closing = "]"
	}
	l.out.WriteString(closing)
	return true
}

// quoted reads a string in single or double quotes, with the escapes that JSON also has, \' and \xHH.
func (l *literalReader) quoted() bool {
	quote := l.rest[0]
	var s strings.Builder
	for i := 1; i < len(l.rest); i++ {
		c := l.rest[i]
		switch {
		case c == quote:
			l.rest = l.rest[i+1:]
			WriteText(&l.out, s.String())
			return true
		case c == '\n':
			return false
		case c != '\\':
			s.WriteByte(c)
			continue
		}
		i++
		if i == len(l.rest) {
			return false
		}
		digits := 0
		switch c := l.rest[i]; c {
		case 'n':
			s.WriteByte('\n')
		case 'r':
			s.WriteByte('\r')
		case 't':
			s.WriteByte('\t')
		case 'b':
			s.WriteByte('\b')
		case 'f':
			s.WriteByte('\f')
		case '\\', '\'', '"':
			s.WriteByte(c)
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		default: // Python keeps the backslash of an escape that it does not know
			s.WriteByte('\\')
			s.WriteByte(c)
		}
		if digits > 0 {
			if i+digits >= len(l.rest) {
				return false
			}
			var r rune
			for _, h := range []byte(l.rest[i+1 : i+1+digits]) {
				n := strings.IndexByte("0123456789abcdef", h|0x20)
				if n < 0 || h < '0' {
					return false
				}
				r = r<<4 | rune(n)
			}
			if !utf8.ValidRune(r) {
				r = utf8.RuneError
			}
			s.WriteRune(r)
			i += digits
		}
	}
	return false
}
