package structured

// Blanks between the parts of a value: none, one blank, or one line end and blanks of an indent. At the beginning of
// the reply there may be two line ends. So a reply never consists of blanks alone.
const mostIndent = 64

// blanks is how many have come: 0 none; 1 one blank, after which none may come; from 2 on a line end and so many less
// 2.
type blanks uint8

// step takes a blank; false where b is none that may come.
func (w blanks) step(b byte, begin bool) (blanks, bool) {
	switch {
	case b == ' ' && w == 0:
		return 1, true
	case b == ' ' && w >= 2 && w < 2+mostIndent:
		return w + 1, true
	case b == '\n' && w == 0 && begin:
		return firstLineEnd, true
	case b == '\n' && (w == 0 || w == firstLineEnd):
		return 2, true
	}
	return w, false
}

// firstLineEnd is behind the first of two line ends.
const firstLineEnd blanks = 255
