package text

import (
	"strings"
	"unicode/utf8"
)

// Stream decodes a reply token by token. What it gives is always whole characters: the pushes and the flush joined
// equal [Tokenizer.Decode] of the same ids (less control tokens, unless KeepControl).
type Stream struct {
	// KeepControl also gives the text of control tokens ([Tokenizer.IsControl]), which a stream leaves out by default.
	KeepControl bool

	t    *Tokenizer
	held []byte // at most three bytes that begin a character
}

// NewStream begins a stream. It belongs to one reply.
func (t *Tokenizer) NewStream() *Stream { return &Stream{t: t} }

// Push gives the text that became certain with id; it is empty while a character is incomplete.
func (s *Stream) Push(id int32) string {
	if !s.KeepControl && s.t.IsControl(id) {
		return ""
	}
	piece := s.t.TokenBytes(id)
	if len(piece) == 0 {
		return ""
	}
	raw := append(s.held, piece...)
	var out strings.Builder
	rest := decodeUTF8(&out, raw, false)
	s.held = append(s.held[:0], rest...)
	return out.String()
}

// Flush ends the stream: a character still incomplete becomes U+FFFD.
func (s *Stream) Flush() string {
	var out strings.Builder
	decodeUTF8(&out, s.held, true)
	s.held = s.held[:0]
	return out.String()
}

// decodeUTF8 writes raw to out, with U+FFFD for each maximal part that is not UTF-8 (Unicode 3.9, "substitution of
// maximal subparts"; Rust's from_utf8_lossy does the same, so that the reference tokenizer agrees). Unless final, it
// stops before an incomplete character at the end and returns its bytes, which alias raw.
func decodeUTF8(out *strings.Builder, raw []byte, final bool) (rest []byte) {
	for len(raw) > 0 {
		good := 0
		for good < len(raw) {
			if raw[good] < utf8.RuneSelf {
				good++
				continue
			}
			r, size := utf8.DecodeRune(raw[good:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			good += size
		}
		out.Write(raw[:good])
		raw = raw[good:]
		if len(raw) == 0 {
			return nil
		}
		bad, complete := invalidPart(raw)
		if !complete && !final {
			return raw
		}
		out.WriteString("\uFFFD")
		raw = raw[bad:]
	}
	return nil
}

// invalidPart measures the maximal invalid part at the start of raw, which does not begin with a whole character.
// complete is false when raw ends inside what may still become one.
func invalidPart(raw []byte) (length int, complete bool) {
	lead := raw[0]
	low, high, want := byte(0x80), byte(0xBF), 0
	switch {
	case lead >= 0xC2 && lead <= 0xDF:
		want = 2
	case lead >= 0xE0 && lead <= 0xEF:
		want = 3
		if lead == 0xE0 {
			low = 0xA0
		}
		if lead == 0xED {
			high = 0x9F
		}
	case lead >= 0xF0 && lead <= 0xF4:
		want = 4
		if lead == 0xF0 {
			low = 0x90
		}
		if lead == 0xF4 {
			high = 0x8F
		}
	default:
		return 1, true
	}
	n := 1
	for n < want {
		if n == len(raw) {
			return n, false
		}
		if raw[n] < low || raw[n] > high {
			return n, true
		}
		low, high = 0x80, 0xBF
		n++
	}
	panic("text: invalidPart called on a valid character")
}
