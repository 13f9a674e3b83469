package qwen35

import (
	"unicode"
	"unicode/utf8"
)

// The words of a text, split as by the pre-tokenizer of the Qwen3.5 family. Its pattern has a look-ahead, which Go's
// regexp lacks, so the alternatives are spelled out here; TestScannerEqualsThePattern holds both together.
const splitPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// class is a set of the character classes that the pattern knows. The first three exclude each other.
type class uint8

const (
	letter  class = 1 << iota // \p{L}
	mark                      // \p{M}
	number                    // \p{N}
	space                     // \s
	newline                   // \r or \n; always with space
)

// classes holds the class of every character of the basic plane.
var classes = func() (table [0x10000]class) {
	for r := range table {
		table[r] = classify(rune(r))
	}
	return table
}()

func classify(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return space | newline
	case unicode.IsSpace(r):
		return space
	case unicode.Is(unicode.L, r):
		return letter
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.Is(unicode.N, r):
		return number
	}
	return 0
}

// classAt gives the class and the length in bytes of the character at s[i:], which must not be empty.
func classAt(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return classes[c], 1
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	if int(r) < len(classes) {
		return classes[r], size
	}
	return classify(r), size
}

// wordEnd gives the end of the word that begins at s[i:], which must not be empty: the leftmost alternative of the
// pattern that matches there, as a regular expression engine with ordered alternatives takes it. The end of s is
// the end of the segment between two added tokens.
func wordEnd(s string, i int) int {
	if s[i] == '\'' {
		if n := contraction(s[i+1:]); n > 0 {
			return i + 1 + n
		}
	}
	first, size := classAt(s, i)

	// A run of letters and marks, after at most one character that is none of them, no digit and no line end.
	from := i
	if first&(letter|number|newline) == 0 {
		from = i + size
	}
	if end := runEnd(s, from, letter|mark); end > from {
		return end
	}
	switch {
	case first&mark != 0, first&number != 0: // a lone mark; one digit at a time
		return i + size
	}

	// A run of punctuation after at most one blank, with the line ends after it.
	from = i
	if s[i] == ' ' {
		from = i + 1
	}
	if end := otherEnd(s, from); end > from {
		return runEnd(s, end, newline)
	}

	// White space: up to its last line end; else all at the end of the segment; else all but the character before a
	// word.
	end, lastLine, last := i, 0, i
	for end < len(s) {
		c, n := classAt(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
		if c&newline != 0 {
			lastLine = end
		}
	}
	switch {
	case lastLine > 0:
		return lastLine
	case end == len(s) || last == i:
		return end
	}
	return last
}

// contraction measures the English contraction after an apostrophe, in any case; 0 where there is none. The long s
// (U+017F) folds to s.
func contraction(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] | 0x20 {
	case 's', 't', 'm', 'd':
		return 1
	case 'r', 'v':
		if len(s) > 1 && s[1]|0x20 == 'e' {
			return 2
		}
	case 'l':
		if len(s) > 1 && s[1]|0x20 == 'l' {
			return 2
		}
	}
	if len(s) >= 2 && s[:2] == "\u017F" {
		return 2
	}
	return 0
}

// runEnd gives the end of the run of characters of any of the wanted classes from s[i:].
func runEnd(s string, i int, wanted class) int {
	for i < len(s) {
		c, size := classAt(s, i)
		if c&wanted == 0 {
			break
		}
		i += size
	}
	return i
}

// otherEnd gives the end of the run of characters of no class from s[i:].
func otherEnd(s string, i int) int {
	for i < len(s) {
		c, size := classAt(s, i)
		if c != 0 {
			break
		}
		i += size
	}
	return i
}
