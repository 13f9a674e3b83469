package structured

import "unicode/utf8"

// texts is what a string must be. Lengths are in characters.
type texts struct {
	least, most int      // most negative: no bound
	pattern     *pattern // nil: any characters
}

// possible reports whether there is such a string.
func (t *texts) possible() bool {
	if t.pattern != nil {
		return t.pattern.start >= 0 // lengths are part of its states
	}
	return t.most < 0 || t.least <= t.most
}

// textState is how far a string is written, its opening quote included.
type textState struct {
	characters int32 // begun
	pattern    int32 // state of the pattern
	part       rune  // the first bits of a character whose bytes have not all come
	missing    uint8 // bytes of that character that are to come
	low, high  uint8 // bounds of the next of them
	escape     uint8 // 1: behind a backslash; 2 to 5: behind \u with so many digits less 2
	code       uint16
}

func (t *texts) begin() textState {
	if t.pattern == nil {
		return textState{}
	}
	return textState{pattern: t.pattern.start}
}

// plain reports whether s is between two characters and not in an escape.
func (s textState) plain() bool { return s.missing == 0 && s.escape == 0 }

// outcome is what a byte does to a string.
type outcome uint8

const (
	refused outcome = iota
	inString
	closed
)

// shortEscapes are the characters behind a backslash, and what they mean.
var shortEscapes = [256]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// step takes one byte of a string. A string that it leaves open can be completed.
func (t *texts) step(s *textState, b byte) outcome {
	switch {
	case s.missing > 0:
		if b < s.low || b > s.high {
			return refused
		}
		s.part, s.missing, s.low, s.high = s.part<<6|rune(b&0x3f), s.missing-1, 0x80, 0xbf
		return t.character(s)
	case s.escape == 1:
		if b == 'u' {
			if t.pattern != nil {
				return refused // what has a short form, or none, is written so
			}
			s.escape, s.code = 2, 0
			return inString
		}
		if shortEscapes[b] == 0 {
			return refused
		}
		s.escape, s.part = 0, shortEscapes[b]
		return t.character(s)
	case s.escape > 1:
		return s.hex(b)
	case b == '"':
		if int(s.characters) < t.least || t.pattern != nil && !t.pattern.accepts[s.pattern] {
			return refused
		}
		return closed
	case b < ' ' || t.most >= 0 && int(s.characters) >= t.most:
		return refused
	case b == '\\':
		if t.pattern != nil && !t.pattern.escapes(s.pattern) {
			return refused
		}
		s.characters, s.escape = s.characters+1, 1
		return inString
	}
	s.characters++
	if !s.lead(b) {
		return refused
	}
	return t.character(s)
}

// lead takes the first byte of a character (Unicode 15, table 3-7).
func (s *textState) lead(b byte) bool {
	s.low, s.high = 0x80, 0xbf
	switch {
	case b < 0x80:
		s.part, s.missing = rune(b), 0
	case b >= 0xc2 && b <= 0xdf:
		s.part, s.missing = rune(b&0x1f), 1
	case b >= 0xe0 && b <= 0xef:
		s.part, s.missing = rune(b&0x0f), 2
		if b == 0xe0 {
			s.low = 0xa0
		} else if b == 0xed {
			s.high = 0x9f // no surrogates
		}
	case b >= 0xf0 && b <= 0xf4:
		s.part, s.missing = rune(b&0x07), 3
		if b == 0xf0 {
			s.low = 0x90
		} else if b == 0xf4 {
			s.high = 0x8f
		}
	default:
		return false
	}
	return true
}

// character takes what has come of a character to the pattern: all of it, or the range in which it will lie.
func (t *texts) character(s *textState) outcome {
	if t.pattern == nil {
		return inString
	}
	if s.missing == 0 {
		if s.pattern = t.pattern.step(s.pattern, s.part); s.pattern < 0 {
			return refused
		}
		return inString
	}
	bits := 6 * (uint(s.missing) - 1)
	low := (s.part<<6 | rune(s.low&0x3f)) << bits
	high := (s.part<<6|rune(s.high&0x3f))<<bits | (1<<bits - 1)
	if !t.pattern.canStep(s.pattern, low, min(high, utf8.MaxRune)) {
		return refused
	}
	return inString
}

// hex takes a digit of \uXXXX. Surrogates are not written so.
func (s *textState) hex(b byte) outcome {
	var v uint16
	switch {
	case b >= '0' && b <= '9':
		v = uint16(b - '0')
	case b >= 'a' && b <= 'f':
		v = uint16(b-'a') + 10
	case b >= 'A' && b <= 'F':
		v = uint16(b-'A') + 10
	default:
		return refused
	}
	digits := s.escape - 2
	if digits == 1 && s.code == 0xd && v >= 8 {
		return refused
	}
	s.code = s.code<<4 | v
	if digits == 3 {
		s.escape = 0
	} else {
		s.escape++
	}
	return inString
}
