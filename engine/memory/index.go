package memory

// Kind says why a point was saved.
type Kind string

const (
	KindSystem    Kind = "system"    // end of the system and tools block
	KindTurn      Kind = "turn"      // H: end of the last user or tool turn, before the reply's header
	KindReply     Kind = "reply"     // E: end of a reply
	KindCancelled Kind = "cancelled" // what a request that ended early had reached
	KindPeriodic  Kind = "periodic"  // every so many tokens inside long prompts and replies
)

// Point is the record of a restore point; the caller owns its state. The state is that after the first Len ids of its
// prefix. With a tape, the tail's ids can be replayed on it, so that it also serves any length up to Reach.
type Point struct {
	Len      int
	Tail     []int32 // ids after Len that the tape covers; empty without a tape
	Kind     Kind
	Restored int // times

	key          Key
	node         *node
	conversation *Conversation
	held         [tiers]*Cost
	pins         int
	used         uint64 // tick
	serial       uint64 // order of saving, for ties
}

// Reach is the longest prefix that the point can be brought to.
func (p *Point) Reach() int { return p.Len + len(p.Tail) }

// In reports whether a tier holds the point.
func (p *Point) In(t Tier) bool { return p.held[t] != nil }

// Key is what the point was computed under.
func (p *Point) Key() Key { return p.key }

// Prefix gives the ids that the point was saved after, [Len], a copy.
func (p *Point) Prefix() []int32 { return p.node.ids() }

// Conversation is the one that the point belongs to.
func (p *Point) Conversation() *Conversation { return p.conversation }

// Conversation groups points that follow each other: a request continues the conversation of the point that it was
// restored from, unless that is the end of a system block, which belongs to all.
type Conversation struct {
	resumed bool // a request continued it, whether or not a point of it was still there
	held    [tiers]int
	points  map[*Point]bool
}

// Index knows all restore points and decides which are used, kept and evicted. It holds no states. Not safe for
// concurrent use.
type Index struct {
	roots  map[Key]*node
	key    Key // what is computed now; points of another key leave first
	usage  [tiers]usage
	points map[*Point]bool
	tick   uint64 // requests
	serial uint64

	tokens        int // ids in all labels
	historyTokens int // bound on ids that belong to no point
}

// NewIndex makes an empty index. key is what states are computed under now. historyTokens bounds how many ids are
// remembered, 4 bytes each, to explain why a prompt missed; the ids of points are always remembered.
func NewIndex(key Key, memory, disk Budget, historyTokens int) *Index {
	x := &Index{key: key, roots: map[Key]*node{}, points: map[*Point]bool{}, historyTokens: historyTokens}
	for t, b := range []Budget{memory, disk} {
		x.usage[t] = usage{budget: b, pages: map[PageID]int{}}
	}
	return x
}

// Usage is what a tier holds now.
func (x *Index) Usage(t Tier) Usage {
	u := &x.usage[t]
	return Usage{Points: u.points, OwnBytes: u.own, Pages: len(u.pages), TotalBytes: u.total()}
}

// Match is what the index knows of a prompt.
type Match struct {
	Point  *Point // nil: none serves
	Usable int    // tokens that it saves: the length to bring it to
	Common int    // longest prefix that was processed before, under this key
}

// Find looks for the point that saves the most of prompt, of which at most most tokens may be taken from a point. Of
// two that save the same it takes the one in memory. A file holds a point with a tape as it was at its reach, and
// serves that length alone. Without disk only points in memory are considered. Every id is compared.
func (x *Index) Find(key Key, prompt []int32, most int, disk bool) Match {
	root := x.roots[key]
	if root == nil {
		return Match{}
	}
	var m Match
	consider := func(p *Point) {
		if p.Len > most || !disk && !p.In(InMemory) {
			return
		}
		usable := p.Len + common(prompt[p.Len:most], p.Tail)
		if !p.In(InMemory) && usable < p.Reach() {
			return
		}
		if better := usable - m.Usable; m.Point == nil || better > 0 || better == 0 && p.In(InMemory) &&
			!m.Point.In(InMemory) {
			m.Point, m.Usable = p, usable
		}
	}
	var passed []*node
	at, inside, depth := root.walk(prompt, func(n *node) { passed = append(passed, n) })
	m.Common = depth
	if inside < len(at.label) && passed[len(passed)-1] == at {
		panic("memory: a node passed in part only")
	}
	for _, n := range passed {
		for _, p := range n.points {
			consider(p)
		}
	}
	return m
}

// Open begins a request and advances the clock that ages points. from is the point that it was restored from, or nil.
func (x *Index) Open(from *Point) *Conversation {
	x.tick++
	if from == nil {
		return &Conversation{}
	}
	from.Restored++
	from.used = x.tick
	if from.Kind == KindSystem {
		return &Conversation{}
	}
	from.conversation.resumed = true
	return from.conversation
}

// Resumed reports whether a request has continued the conversation. Resumed conversations are kept before others.
func (c *Conversation) Resumed() bool { return c.resumed }

// Claim is what a point of the conversation may take the room of.
func (c *Conversation) Claim() Claim {
	if c.resumed {
		return ClaimResumed
	}
	return ClaimNew
}

// Resume notes that a request continued the conversation, although no point of it was there, or in an earlier run.
func (c *Conversation) Resume() { c.resumed = true }

// Learn remembers that ids were processed, or asked for, under key.
func (x *Index) Learn(key Key, ids []int32) {
	n, added := x.root(key).grow(ids)
	x.tokens += added
	for ; n != nil; n = n.parent {
		n.seen = x.tick
	}
	if x.tokens > x.historyTokens+x.pointTokens() {
		x.forget()
	}
}

func (x *Index) root(key Key) *node {
	if x.roots[key] == nil {
		x.roots[key] = &node{}
	}
	return x.roots[key]
}

// Add records a point after prefix that tier t holds from now on. The caller made room with [Index.Room]; a point that
// does not fit is a bug. A second point at the same prefix, of the same or a shorter tail, is useless: see [Index.Has].
func (x *Index) Add(key Key, prefix, tail []int32, kind Kind, c *Conversation, t Tier, cost Cost) *Point {
	n, added := x.root(key).grow(prefix)
	x.tokens += added
	x.serial++
	p := &Point{Len: len(prefix), Tail: append([]int32(nil), tail...), Kind: kind, key: key, node: n, conversation: c,
		used: x.tick, serial: x.serial}
	n.points = append(n.points, p)
	n.lost = ""
	x.points[p] = true
	if c.points == nil {
		c.points = map[*Point]bool{}
	}
	c.points[p] = true
	x.Hold(p, t, cost)
	return p
}

// Has gives the point that was saved after exactly prefix and reaches at least as far as tail, or nil.
func (x *Index) Has(key Key, prefix, tail []int32) *Point {
	root := x.roots[key]
	if root == nil {
		return nil
	}
	at, inside, depth := root.walk(prefix, nil)
	if depth < len(prefix) || inside < len(at.label) {
		return nil
	}
	for _, p := range at.points {
		if len(p.Tail) >= len(tail) && common(p.Tail, tail) == len(tail) {
			return p
		}
	}
	return nil
}

// Hold records that a tier holds a point that is already known. Room was made before.
func (x *Index) Hold(p *Point, t Tier, cost Cost) {
	if p.held[t] != nil || !x.usage[t].fits(cost) {
		panic("memory: a point held twice, or past the budget")
	}
	cost.Pages = append([]PageID(nil), cost.Pages...)
	p.held[t] = &cost
	x.usage[t].add(cost)
	p.conversation.held[t]++
}

// Gone is a point that left a tier, and the pages of that tier that no point refers to any more.
type Gone struct {
	*Point
	Free []PageID
}

// Release takes a point out of a tier; one that no tier holds is forgotten, and why is kept for [Index.Explain].
func (x *Index) Release(p *Point, t Tier, why Lost) Gone {
	if p.held[t] == nil {
		panic("memory: Release of a point that is not held")
	}
	g := Gone{Point: p}
	x.usage[t].take(*p.held[t])
	g.Free = x.Unheld(t, p.held[t].Pages)
	p.held[t] = nil
	p.conversation.held[t]--
	if !p.In(InMemory) && !p.In(OnDisk) {
		x.remove(p, why)
	}
	return g
}

func (x *Index) remove(p *Point, why Lost) {
	delete(x.points, p)
	delete(p.conversation.points, p)
	for i, other := range p.node.points {
		if other == p {
			p.node.points = append(p.node.points[:i:i], p.node.points[i+1:]...)
			break
		}
	}
	p.node.lost = why
}

// Unheld gives those of a tier's pages that no point refers to.
func (x *Index) Unheld(t Tier, pages []PageID) (free []PageID) {
	for _, page := range pages {
		if x.usage[t].pages[page] == 0 {
			free = append(free, page)
		}
	}
	return free
}

// Along gives the points on the path of ids, from its start.
func (x *Index) Along(key Key, ids []int32) (points []*Point) {
	if root := x.roots[key]; root != nil {
		root.walk(ids, func(n *node) { points = append(points, n.points...) })
	}
	return points
}

// Below gives the longest point on the path of ids, in any tier, or nil.
func (x *Index) Below(key Key, ids []int32) *Point {
	return x.deepest(key, ids, func(*Point) bool { return true })
}

// Nearest gives the longest point in memory on the path of ids, which shares its pages with them.
func (x *Index) Nearest(key Key, ids []int32) *Point {
	return x.deepest(key, ids, func(p *Point) bool { return p.In(InMemory) })
}

func (x *Index) deepest(key Key, ids []int32, fits func(*Point) bool) (best *Point) {
	if root := x.roots[key]; root != nil {
		root.walk(ids, func(n *node) {
			for _, p := range n.points {
				if fits(p) && (best == nil || p.Len > best.Len) {
					best = p
				}
			}
		})
	}
	return best
}

// Pin keeps a point from being evicted until Unpin: a running request uses it.
func (x *Index) Pin(p *Point)   { p.pins++ }
func (x *Index) Unpin(p *Point) { p.pins-- }

// Pinned reports whether a running request, or a write, uses the point.
func (x *Index) Pinned(p *Point) bool { return p.pins > 0 }

// Points visits all points, in no order.
func (x *Index) Points(visit func(*Point)) {
	for p := range x.points {
		visit(p)
	}
}

// pointTokens is how many ids belong to points, shared ones counted once.
func (x *Index) pointTokens() int {
	marked := map[*node]bool{}
	total := 0
	for p := range x.points {
		for n := p.node; n != nil && !marked[n]; n = n.parent {
			marked[n] = true
			total += len(n.label)
		}
	}
	return total
}

// forget drops the least recently seen ids that belong to no point, until an eighth of the bound is free.
func (x *Index) forget() {
	for x.tokens > x.pointTokens()+x.historyTokens*7/8 {
		var oldest *node
		for _, root := range x.roots {
			root.each(func(n *node) {
				if n.parent != nil && len(n.children) == 0 && len(n.points) == 0 &&
					(oldest == nil || n.seen < oldest.seen) {
					oldest = n
				}
			})
		}
		if oldest == nil {
			return
		}
		x.tokens -= oldest.prune()
	}
}
