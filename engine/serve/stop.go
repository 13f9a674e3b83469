package serve

import "strings"

// StopFinder looks for stop texts in a stream that may split them anywhere. What could still become a stop text is held
// back.
type StopFinder struct {
	Stops []string // none is empty
	Found string   // that ended the stream; empty: none yet
	held  string   // no stop text inside; a proper prefix of one, or empty
}

// Push adds text and gives what is certain not to belong to a stop text. Once hit, the stream is over: what follows the
// earliest stop text is dropped.
func (f *StopFinder) Push(text string) (certain string, hit bool) {
	if len(f.Stops) == 0 {
		return text, false
	}
	all := f.held + text
	first := -1
	for _, stop := range f.Stops {
		if at := strings.Index(all, stop); at >= 0 && (first < 0 || at < first) {
			first, f.Found = at, stop
		}
	}
	if first >= 0 {
		f.held = ""
		return all[:first], true
	}
	keep := 0
	for _, stop := range f.Stops {
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

// Flush gives what was held when the stream ended without a stop text.
func (f *StopFinder) Flush() string {
	held := f.held
	f.held = ""
	return held
}
