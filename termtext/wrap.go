package termtext

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width is the number of columns that a terminal gives to a line: two for a wide character of East Asia or an emoji,
// none for a combining one. In a sequence of joined emoji every part counts, so that no terminal shows more.
func Width(line string) int {
	columns := 0
	for _, r := range line {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case 0x1160 <= r && r <= 0x11ff: // vowels and ends of Hangul join what is before them
		return 0
	case wide(r):
		return 2
	}
	return 1
}

func wide(r rune) bool {
	kind := width.LookupRune(r).Kind()
	return kind == width.EastAsianWide || kind == width.EastAsianFullwidth
}

// Wrap breaks a line so that no part has more than columns columns, at blanks and beside wide characters. Parts after
// the first begin with hang blanks. A word that is wider than a part stays whole: it is a path or an address, to be
// copied. columns 0: the line stays whole.
func Wrap(line string, columns, hang int) []string {
	if columns <= 0 || Width(line) <= columns {
		return []string{line}
	}
	hang = min(hang, columns/2)
	lead := line[:len(line)-len(strings.TrimLeft(line, " "))]
	var parts []string
	part, used, empty := lead, len(lead), true
	for _, word := range words(line[len(lead):]) {
		bare := strings.TrimRight(word, " ")
		if !empty && used+Width(bare) > columns {
			parts = append(parts, strings.TrimRight(part, " "))
			part, used = strings.Repeat(" ", hang), hang
		}
		part, used, empty = part+word, used+Width(word), false
	}
	return append(parts, strings.TrimRight(part, " "))
}

// words cuts a text where a line may break: each word keeps the blanks after it, and wide characters are words of
// their own, with what combines with them.
func words(text string) []string {
	var all []string
	begin, blank, beforeWide := 0, false, false
	for at, r := range text {
		if at > begin && runeWidth(r) > 0 && r != ' ' && (blank || beforeWide || wide(r)) {
			all = append(all, text[begin:at])
			begin = at
		}
		if runeWidth(r) > 0 {
			blank, beforeWide = r == ' ', wide(r) || beforeWide && r == ' '
		}
	}
	return append(all, text[begin:])
}

// Cut is the beginning of a line that has at most columns columns, with an ellipsis where something is missing.
func Cut(line string, columns int) string {
	if columns <= 0 || Width(line) <= columns {
		return line
	}
	used := 0
	for at, r := range line {
		if used += runeWidth(r); used > columns-1 {
			return line[:at] + "…"
		}
	}
	return line
}
