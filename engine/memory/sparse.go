package memory

// Period is how far apart periodic points are: a quarter of the tier's own bytes, spread over a whole window, in whole
// chunks, as only a chunk's end is a place to save at. 0 where the budget holds too few points for any.
func Period(windowTokens, chunkTokens int, ownBytes, pointBytes int64) int {
	points := int(ownBytes / 4 / max(1, pointBytes))
	if points < 1 {
		return 0
	}
	chunks := (windowTokens/points + chunkTokens - 1) / chunkTokens
	return max(1, chunks) * chunkTokens
}

// denseSpan is how many periods before the end every periodic point stays. Before that, every doubling of the distance
// halves their number.
const denseSpan = 16

// keepsPeriodic reports whether the point after tokens stays in a prefix of length: it is the multiple of a power of
// two of periods, and the power grows with the distance.
func keepsPeriodic(tokens, length, period int) bool {
	step := 1
	for at := tokens / period; at > 0 && at%2 == 0; at /= 2 {
		step *= 2
	}
	return length-tokens <= denseSpan*period*step
}

// near is how many tokens of recomputation are not worth a point: half of what a follow-up may cost beyond what is new.
const near = 8

// Tidy thins the points on the path of ids, which a request has just ended with: periodic ones get sparse with
// distance, and a turn's or a reply's point goes when another one that stays is near below it and a later one carries
// on. It returns what left memory and what left the disk.
func (x *Index) Tidy(key Key, ids []int32, period int) (gone [2][]Gone) {
	path := x.Along(key, ids)
	kept := -1 // length of the last point that stays
	for i, p := range path {
		why := Lost("")
		switch {
		case p.pins > 0 || i == len(path)-1:
		case p.Kind == KindPeriodic && period > 0 && !keepsPeriodic(p.Len, len(ids), period):
			why = LostThinned
		case p.Kind != KindSystem && kept >= 0 && len(p.Tail) == 0 && p.Len-kept <= near:
			why = LostSuperseded
		}
		if why == "" {
			kept = p.Len
			continue
		}
		for t := range tiers {
			if p.In(t) {
				gone[t] = append(gone[t], x.Release(p, t, why))
			}
		}
	}
	return gone
}
