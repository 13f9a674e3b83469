package text

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxMarks is the longest run of marks that golang.org/x/text normalises as Unicode's form C says; into longer ones it
// puts U+034F (the stream-safe format), which the tokenizers that made the models do not.
const maxMarks = 30

// normalize gives the normalisation form C of valid UTF-8.
func normalize(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return s
	}
	start, end, found := manyMarks(s)
	if !found {
		if norm.NFC.IsNormalString(s) {
			return s
		}
		return norm.NFC.String(s)
	}
	var out []byte
	for found {
		out = append(out, norm.NFC.String(s[:start])...)
		out = append(out, composeMarks(s[start:end])...)
		s = s[end:]
		start, end, found = manyMarks(s)
	}
	return string(append(out, norm.NFC.String(s)...))
}

// manyMarks finds the first run of characters that hang together and hold more than maxMarks marks: from a character
// before which form C never joins, up to the next such character.
func manyMarks(s string) (start, end int, found bool) {
	marks := 0
	for i, r := range s {
		if r < 0x300 { // below the first combining mark every character is a boundary
			if found {
				return start, i, true
			}
			start, marks = i, 0
			continue
		}
		p := norm.NFC.PropertiesString(s[i:])
		if p.BoundaryBefore() {
			if found {
				return start, i, true
			}
			start, marks = i, 0
		}
		// A character may carry marks inside (Ǟ) and a mark may be two (U+0344): count its decomposed form.
		if d := p.Decomposition(); d != nil {
			marks += utf8.RuneCount(d)
		} else if p.CCC() != 0 {
			marks++
		}
		if marks > maxMarks-2 {
			found = true
		}
	}
	return start, len(s), found
}

// composeMarks applies the Unicode algorithms (Standard, 3.11) directly: decompose, order marks by class, compose.
func composeMarks(s string) string {
	var runes []rune
	var order []uint8
	for i, r := range s {
		p := norm.NFD.PropertiesString(s[i:])
		d := []rune{r}
		if p.Decomposition() != nil {
			d = []rune(string(p.Decomposition()))
		} else if r >= 0xAC00 && r <= 0xD7A3 { // Hangul syllables decompose by arithmetic
			d = []rune(norm.NFD.String(string(r)))
		}
		for _, r := range d {
			runes = append(runes, r)
			order = append(order, norm.NFD.PropertiesString(string(r)).CCC())
		}
	}
	for i := 0; i < len(runes); {
		j := i
		for j < len(runes) && order[j] != 0 {
			j++
		}
		if j > i {
			type ranked struct {
				r rune
				c uint8
			}
			group := make([]ranked, 0, j-i)
			for k := i; k < j; k++ {
				group = append(group, ranked{runes[k], order[k]})
			}
			slices.SortStableFunc(group, func(a, b ranked) int { return int(a.c) - int(b.c) })
			for k, g := range group {
				runes[i+k], order[i+k] = g.r, g.c
			}
			i = j
			continue
		}
		i++
	}
	out := runes[:0:0]
	starter, last := -1, uint8(0) // index in out of the last starter; class of the character kept after it
	for i, r := range runes {
		c := order[i]
		if starter >= 0 && (last < c || last == 0 && starter == len(out)-1) {
			if joined, ok := composePair(out[starter], r); ok {
				out[starter] = joined
				continue
			}
		}
		if c == 0 {
			starter, last = len(out), 0
		} else {
			last = c
		}
		out = append(out, r)
	}
	return string(out)
}

// composePair gives the character that form C puts for two, if there is one.
func composePair(a, b rune) (rune, bool) {
	pair := string(a) + string(b)
	joined := norm.NFC.String(pair)
	r, size := utf8.DecodeRuneInString(joined)
	return r, size == len(joined) && joined != pair
}
