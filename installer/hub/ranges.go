package hub

import "slices"

// byteRange is half-open: [From, To).
type byteRange struct{ From, To int64 }

// rangeSet is a sorted list of ranges that neither touch nor overlap.
type rangeSet []byteRange

// add merges r in.
func (s rangeSet) add(r byteRange) rangeSet {
	if r.From >= r.To {
		return s
	}
	out := make(rangeSet, 0, len(s)+1)
	for _, have := range s {
		if have.To < r.From || have.From > r.To {
			out = append(out, have)
			continue
		}
		r = byteRange{min(r.From, have.From), max(r.To, have.To)}
	}
	out = append(out, r)
	slices.SortFunc(out, func(a, b byteRange) int {
		if a.From < b.From {
			return -1
		}
		return 1
	})
	return out
}

// bytes is the sum of all lengths.
func (s rangeSet) bytes() int64 {
	var n int64
	for _, r := range s {
		n += r.To - r.From
	}
	return n
}

// gap is the first range of [0,size) that s does not cover, ok false when there is none.
func (s rangeSet) gap(size int64) (byteRange, bool) {
	at := int64(0)
	for _, r := range s {
		if r.From > at {
			return byteRange{at, r.From}, true
		}
		at = max(at, r.To)
	}
	return byteRange{at, size}, at < size
}

// reach is how far s covers without a gap from at on.
func (s rangeSet) reach(at int64) int64 {
	for _, r := range s {
		if r.From <= at && at < r.To {
			at = r.To
		}
	}
	return at
}

// valid reports whether s keeps its own rules within [0,size).
func (s rangeSet) valid(size int64) bool {
	at := int64(-1)
	for _, r := range s {
		if r.From <= at || r.From >= r.To || r.To > size || r.From < 0 {
			return false
		}
		at = r.To
	}
	return true
}
