package memory

// Cause says why tokens that were known before were computed again.
type Cause string

const (
	CauseNone     Cause = ""          // nothing was, or too little to matter
	CauseOtherKey Cause = "other key" // a point would have served, had its key been equal
	CauseEvicted  Cause = "evicted"   // a point was there and was evicted
	// a point was there and was dropped, as points get sparse with distance and near each other
	CauseThinned Cause = "thinned"
	CauseNoRoom  Cause = "no room"  // none was saved there: what the budget held was worth more, or in use
	CauseDamaged Cause = "damaged"  // its file was torn or flipped
	CauseNoPoint Cause = "no point" // no point was saved nearer to where the prefixes part
	// the request that computed them was cancelled, and what it had reached could not be kept
	CauseCancelled Cause = "cancelled"
)

// Explanation accounts for a prompt: Prompt = Cached + Computed, and Computed = New + Again.
type Explanation struct {
	Common     int // longest prefix that was processed before
	Cached     int // taken from the point
	Again      int // known before, computed again
	New        int // never seen, or beyond what may be taken from a point
	Cause      Cause
	Keys       []string    // for CauseOtherKey: what differs
	Difference *Difference // where the prompt differs from what was known; nil where it only continues it
}

// Difference is the place where a prompt differs from the known text: both sides, with a little of what they share.
type Difference struct {
	At     int     // first id that differs
	Before []int32 // ids that both share before it
	Old    []int32 // what was there the last time
	New    []int32 // what is there now
}

// Ids of context shown at a difference.
const (
	shownBefore = 16
	shownAfter  = 64 // a UUID is up to 36 of them, and what follows must show
)

// smallAgain is how much recomputation needs no reason: headers between a point and where a turn begins.
const smallAgain = 16

// Explain accounts for a prompt of which used tokens came from a point; most is the bound given to Find. Ask before the
// prompt itself is learnt.
func (x *Index) Explain(key Key, prompt []int32, used, most int) Explanation {
	e := Explanation{Cached: used}
	root := x.roots[key]
	var at *node
	inside := 0
	lost := Lost("")
	if root != nil {
		at, inside, e.Common = root.walk(prompt, func(n *node) {
			if n.depth > used && n.lost != "" {
				lost = n.lost
			}
		})
		e.Difference = differenceOf(prompt, at, inside, e.Common)
	}
	e.Again = max(0, min(e.Common, most)-used)
	e.New = len(prompt) - used - e.Again
	for other, otherRoot := range x.roots {
		if other == key {
			continue
		}
		if m := x.Find(other, prompt, most, true); m.Point != nil && m.Usable > used+smallAgain {
			e.Cause, e.Keys = CauseOtherKey, key.Differences(other)
			_, _, e.Common = otherRoot.walk(prompt, nil)
			e.Again = max(0, min(e.Common, most)-used)
			e.New = len(prompt) - used - e.Again
			return e
		}
	}
	switch {
	case e.Again <= smallAgain:
	case lost == LostDamaged:
		e.Cause = CauseDamaged
	case lost == LostCancelled:
		e.Cause = CauseCancelled
	case lost == LostNoRoom:
		e.Cause = CauseNoRoom
	case lost == LostEvicted:
		e.Cause = CauseEvicted
	case lost == LostThinned || lost == LostSuperseded:
		e.Cause = CauseThinned
	default:
		e.Cause = CauseNoPoint
	}
	return e
}

// Lose notes that a point after prefix was wanted and could not be kept, or was found damaged.
func (x *Index) Lose(key Key, prefix []int32, why Lost) {
	n, added := x.root(key).grow(prefix)
	x.tokens += added
	n.seen = x.tick
	if len(n.points) == 0 {
		n.lost = why
	}
}

// differenceOf compares a prompt with the most recent text that was known beyond the shared part.
func differenceOf(prompt []int32, at *node, inside, depth int) *Difference {
	if depth == 0 || depth == len(prompt) {
		return nil
	}
	var old []int32
	if inside < len(at.label) {
		old = at.label[inside:]
	}
	n := at
	for len(old) < shownAfter {
		var latest *node
		for _, child := range n.children {
			if latest == nil || child.seen > latest.seen {
				latest = child
			}
		}
		if latest == nil {
			break
		}
		old = append(old[:len(old):len(old)], latest.label...)
		n = latest
	}
	if len(old) == 0 {
		return nil // the prompt continues where the known text ended
	}
	clip := func(ids []int32) []int32 { return append([]int32(nil), ids[:min(len(ids), shownAfter)]...) }
	return &Difference{At: depth, Before: append([]int32(nil), prompt[max(0, depth-shownBefore):depth]...),
		Old: clip(old), New: clip(prompt[depth:])}
}
