package structured

// Blanks between the parts of a value: none, one blank, or one line end and blanks of an indent, as programs write JSON
// for people. At the beginning of the reply there may be two line ends. So a reply never consists of blanks alone, and
// a model that likes them does not run out of tokens.
const blanksOfLevel = 4

// blanks is how many have come: 0 none; 1 one blank, after which none may come; from 2 on a line end and so many less
// 2.
type blanks uint8

// firstLineEnd is behind the first of two line ends.
const firstLineEnd blanks = 255

// noBlanks is before a value whose blanks were taken by the list around it.
const noBlanks blanks = 254

// step takes a blank; false where b may not come here. A line end is followed by at most so many of an indent;
// negative: there may be none.
func (w blanks) step(b byte, indent int, begin bool) (blanks, bool) {
	switch {
	case b == ' ' && w == 0:
		return 1, true
	case b == ' ' && w >= 2 && w < noBlanks && int(w) < 2+indent:
		return w + 1, true
	case b == '\n' && w == 0 && begin:
		return firstLineEnd, true
	case b == '\n' && (w == 0 && indent >= 0 || w == firstLineEnd):
		return 2, true
	}
	return w, false
}
