package serve

import "strings"

// stopFinder looks for stop texts in a stream that may cut them anywhere. What could still become a stop text is held back.
type stopFinder struct {
	stops []string // none is empty
	held  string   // no stop text inside; a proper prefix of one, or empty
}

// push adds text and gives what is certain not to belong to a stop text. Once hit, the stream is over: what follows the
// earliest stop text is dropped.
func (f *stopFinder) push(text string) (certain string, hit bool) {
	if len(f.stops) == 0 {
		return text, false
	}
	all := f.held + text
	first := -1
	for _, stop := range f.stops {
		if at := strings.Index(all, stop); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	if first >= 0 {
		f.held = ""
		return all[:first], true
	}
	keep := 0
	for _, stop := range f.stops {
		for n := min(len(stop)-1, len(all)); n > keep; n-- {
			if strings.HasSuffix(all, stop[:n]) {
				keep = n
				break
			}
		}
	}
	f.held = all[len(all)-keep:]
	return all[:len(all)-keep], false
}

// flush gives what was held when the stream ended without a stop text.
func (f *stopFinder) flush() string {
	held := f.held
	f.held = ""
	return held
}
