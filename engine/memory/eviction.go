package memory

import "cmp"

// Room makes room for cost in a tier and returns the points that were evicted from it, in order. The caller frees their
// states or files before it adds the new one, also where ok is false: then there is no room. If evicting every point
// that may be evicted would not suffice, nothing is evicted.
//
// The point that saves the least recomputation per byte goes first: see [Index.worth]. The only point of a resumed
// conversation, or that of its newest turn, goes after all others, however old. The claim bounds what may be evicted.
func (x *Index) Room(t Tier, cost Cost, claim Claim) (gone []Gone, ok bool) {
	u := &x.usage[t]
	if u.fits(cost) {
		return nil, true
	}
	for p := range x.points {
		if p.In(t) && x.spares(p, claim) {
			x.Pin(p)
			defer x.Unpin(p)
		}
	}
	if claim == ClaimNew {
		if latest := x.latestLast(t); latest != nil {
			x.Pin(latest)
			defer x.Unpin(latest)
		}
	}
	pinned := usage{budget: u.budget, pages: map[PageID]int{}}
	for p := range x.points {
		if p.pins > 0 && p.In(t) {
			pinned.add(*p.held[t])
		}
	}
	if !pinned.fits(cost) {
		return nil, false
	}
	for !u.fits(cost) {
		p := x.leastWorth(t, cost)
		if x.rank(p, t) == rankLast && x.pinnedBelow(t) {
			return gone, false // the others that should go first are in use for a moment
		}
		gone = append(gone, x.Release(p, t, LostEvicted))
	}
	return gone, true
}

// Claim says which points a new one may evict.
type Claim int

const (
	ClaimNew     Claim = iota // any but the only point of the most recently resumed conversation: it may never be used
	ClaimResumed              // any: its conversation was resumed
	ClaimSpare                // periodic points, and those of another key
)

// spares reports whether a claim may not evict p.
func (x *Index) spares(p *Point, claim Claim) bool {
	return claim == ClaimSpare && p.Kind != KindPeriodic && p.key == x.key
}

// latestLast is the only point of the most recently resumed conversation in a tier, or nil.
func (x *Index) latestLast(t Tier) (latest *Point) {
	for p := range x.points {
		if p.In(t) && x.rank(p, t) == rankLast &&
			(latest == nil || cmp.Or(cmp.Compare(p.used, latest.used), cmp.Compare(p.serial, latest.serial)) > 0) {
			latest = p
		}
	}
	return latest
}

// pinnedBelow reports whether a tier holds a pinned point that is not the last of its conversation.
func (x *Index) pinnedBelow(t Tier) bool {
	for p := range x.points {
		if p.pins > 0 && p.In(t) && x.rank(p, t) != rankLast {
			return true
		}
	}
	return false
}

// leastWorth is the point that is evicted from a tier next. There is one.
func (x *Index) leastWorth(t Tier, cost Cost) *Point {
	own, pages := x.usage[t].short(cost)
	var least *Point
	var leastRank int
	var leastWorth float64
	for p := range x.points {
		if p.pins > 0 || !p.In(t) {
			continue
		}
		rank, worth := x.rank(p, t), x.worth(p, t, own, pages)
		if least == nil || cmp.Or(cmp.Compare(rank, leastRank), cmp.Compare(worth, leastWorth),
			cmp.Compare(p.serial, least.serial)) < 0 {
			least, leastRank, leastWorth = p, rank, worth
		}
	}
	if least == nil {
		panic("memory: nothing can leave a full tier")
	}
	return least
}

// rank is compared before worth: points of another key go first, then others, then the last of a conversation. The last
// is that of the newest turn, while it is there: by worth alone an older one would stay, as the newest adds little to
// it, and the turns between would be computed again. It is not the end of the reply after it, which is useless if the
// client sends the reply back changed. It never goes before the other points of its conversation.
func (x *Index) rank(p *Point, t Tier) int {
	switch {
	case p.key != x.key:
		return 0
	case x.last(p, t) || x.newestTurn(p, t):
		return rankLast
	}
	return 1
}

const rankLast = 2

// newestTurn reports whether p is the newest turn of a resumed conversation, from which it continues even if the client
// sends the reply back changed. For a point in memory, a copy on disk serves as well.
func (x *Index) newestTurn(p *Point, t Tier) bool {
	return p.conversation.resumed && p.Kind == KindTurn && (t == OnDisk || !p.In(OnDisk)) && !p.conversation.passed(p)
}

// last reports whether p is the only point of a resumed conversation. For a point in memory, a copy on disk counts as
// another; on disk, which has to outlive the process, only another file does.
func (x *Index) last(p *Point, t Tier) bool {
	c := p.conversation
	others := c.held[OnDisk]
	if t == InMemory {
		others += c.held[InMemory]
	}
	return c.resumed && others == 1
}

// likelihood is how likely a point is to be used again, relative to others, before its use is considered. A
// conversation continues from a reply's end; the turn before it serves replies that were changed, and regeneration; a
// system block serves every conversation; periodic points serve edits of earlier text.
var likelihood = map[Kind]float64{KindSystem: 1, KindReply: 1, KindCancelled: 0.8, KindTurn: 0.5, KindPeriodic: 0.1}

// copyShare is what a lost copy costs as a share of losing the point, where another tier still holds it: reading a
// point from disk takes about as long as computing a tenth of what it usually saves.
const copyShare = 0.1

// passedShare is how likely a point is to be used once its conversation has a later turn, relative to before: only
// edits and branches reach back. How often it was restored does not count, as that was for earlier turns.
const passedShare = 0.2

func (c *Conversation) passed(p *Point) bool {
	for q := range c.points {
		if q.Kind == KindTurn && q.Len > p.Len {
			return true
		}
	}
	return false
}

// worth is the recomputation that a point saves in its tier, in tokens per byte that evicting it would free of what is
// short (own bytes, pages, or both): the tokens back to the nearest other point that would serve, times how likely it
// is to be used: its kind, whether its conversation has a later turn, how often a shared one was restored, and how many
// requests ago it was last used or saved.
func (x *Index) worth(p *Point, t Tier, own, pages bool) float64 {
	tokens := float64(p.Reach() - x.below(p))
	chance := likelihood[p.Kind] / float64(1+x.tick-p.used)
	switch {
	case p.Kind == KindSystem || p.Kind == KindPeriodic:
		chance *= float64(1 + p.Restored)
	case p.conversation.passed(p):
		chance *= passedShare
	}
	if p.In(InMemory) && p.In(OnDisk) {
		chance *= copyShare
	}
	return chance * tokens / float64(max(1, x.usage[t].frees(*p.held[t], own, pages)))
}

// below is the length of the longest other point on p's path, which would serve instead of p.
func (x *Index) below(p *Point) int {
	best := 0
	for n := p.node; n != nil; n = n.parent {
		for _, other := range n.points {
			if other != p {
				best = max(best, other.Len)
			}
		}
		if best > 0 {
			break
		}
	}
	return best
}
