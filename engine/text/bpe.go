package text

import (
	"container/heap"
	"math"
	"strings"
	"unicode/utf8"
)

// merged is what two neighbouring tokens become; a lower rank is merged first.
type merged struct {
	rank int32
	id   int32
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

const (
	cachedWords    = 1 << 15 // words an encoder remembers before it forgets them all
	cachedWordSize = 48      // bytes; longer words are rare
	scannedSymbols = 24      // up to here a word's lowest rank is found by looking at all pairs
)

// encoder is the working memory of one Encode at a time.
type encoder struct {
	t     *Tokenizer
	cache map[string][]int32 // word -> its ids
	ids   []int32            // symbols of the current word
	chain chain

	most    int // ids after which encoding stops
	atLeast int // ids that there are at least, once it stopped; else 0
}

func newEncoder(t *Tokenizer) *encoder {
	return &encoder{t: t, cache: map[string][]int32{}, most: math.MaxInt}
}

// full reports whether encoding stops with certain ids.
func (e *encoder) full(certain int) bool {
	if certain > e.most {
		e.atLeast = max(e.atLeast, certain)
	}
	return e.atLeast > 0
}

// trim gives back the room that a very long word took: 60 bytes for each of its own.
func (e *encoder) trim() {
	if cap(e.ids) > keptSymbols {
		e.ids, e.chain = nil, chain{}
	}
}

// segment appends the ids of the text between two added tokens.
func (e *encoder) segment(out []int32, s string) []int32 {
	for s != "" && !e.full(len(out)) {
		end := blockEnd(s)
		if end > boundedSegment && e.full(len(out)+e.t.fewest(s[:end])/shrinkByNFC) {
			return out
		}
		out = e.block(out, s[:end])
		s = s[end:]
	}
	return out
}

// block appends the ids of a part of a segment that can be encoded by itself.
func (e *encoder) block(out []int32, s string) []int32 {
	if !utf8.ValidString(s) {
		var valid strings.Builder
		decodeUTF8(&valid, []byte(s), true)
		s = valid.String()
	}
	if e.t.nfc {
		s = normalize(s)
	}
	for i := 0; i < len(s); {
		end := e.t.wordEnd(s, i)
		if end-i > boundedWord && e.full(len(out)+e.t.fewest(s[i:end])) {
			return out
		}
		out = e.word(out, s[i:end])
		i = end
	}
	return out
}

// word appends the ids of one word.
func (e *encoder) word(out []int32, w string) []int32 {
	if len(w) == 1 {
		return append(out, e.t.byteID[w[0]])
	}
	if ids, ok := e.cache[w]; ok {
		return append(out, ids...)
	}
	start := len(out)
	if id, ok := e.t.words[w]; ok && e.t.whole {
		out = append(out, id)
	} else {
		out = append(out, e.merge(w)...)
	}
	if len(w) <= cachedWordSize {
		if len(e.cache) >= cachedWords {
			clear(e.cache)
		}
		e.cache[strings.Clone(w)] = append([]int32(nil), out[start:]...)
	}
	return out
}

// merge gives the ids of a word: its bytes, with the pair of lowest rank (the leftmost of equals) merged until none is
// left. The result is valid until the next call.
func (e *encoder) merge(w string) []int32 {
	e.ids = e.ids[:0]
	for i := 0; i < len(w); i++ {
		e.ids = append(e.ids, e.t.byteID[w[i]])
	}
	if len(e.ids) > scannedSymbols {
		e.ids = e.chain.merge(e.t.merges, e.ids)
		return e.ids
	}
	for len(e.ids) > 1 {
		best, at := merged{rank: -1}, 0
		for i := 0; i+1 < len(e.ids); i++ {
			if m, ok := e.t.merges[pairKey(e.ids[i], e.ids[i+1])]; ok && (best.rank < 0 || m.rank < best.rank) {
				best, at = m, i
			}
		}
		if best.rank < 0 {
			break
		}
		e.ids[at] = best.id
		e.ids = append(e.ids[:at+1], e.ids[at+2:]...)
	}
	return e.ids
}

// chain merges long words in n·log n steps: the symbols as a doubly linked list, the pairs that may merge in a heap.
type chain struct {
	links []link
	pairs pairHeap
	steps int // heap operations of the last merge, for the test of its growth
}

type link struct{ id, prev, next int32 } // -1 ends the list; id -1 marks a symbol merged away

type pair struct {
	merged
	left                int32 // index of the left symbol
	wantLeft, wantRight int32 // ids at the time the pair was seen; others by now make it stale
}

// merge returns the merged ids, written over ids.
func (c *chain) merge(merges map[uint64]merged, ids []int32) []int32 {
	c.links, c.pairs, c.steps = c.links[:0], c.pairs[:0], 0
	for i, id := range ids {
		c.links = append(c.links, link{id: id, prev: int32(i) - 1, next: int32(i) + 1})
	}
	c.links[len(ids)-1].next = -1
	for i := range c.links {
		if p, ok := c.pairAt(merges, int32(i)); ok {
			c.pairs = append(c.pairs, p)
		}
	}
	heap.Init(&c.pairs)
	for len(c.pairs) > 0 {
		p := heap.Pop(&c.pairs).(pair)
		c.steps++
		left := &c.links[p.left]
		if left.id != p.wantLeft || left.next < 0 || c.links[left.next].id != p.wantRight {
			continue
		}
		right := &c.links[left.next]
		left.id, right.id, left.next = p.id, -1, right.next
		if left.next >= 0 {
			c.links[left.next].prev = p.left
		}
		for _, at := range [2]int32{left.prev, p.left} {
			if next, ok := c.pairAt(merges, at); ok {
				heap.Push(&c.pairs, next)
				c.steps++
			}
		}
	}
	out := ids[:0]
	for i := int32(0); i >= 0; i = c.links[i].next {
		out = append(out, c.links[i].id)
	}
	return out
}

// pairAt gives the merge of the symbol at index left with its right neighbour, if there is one.
func (c *chain) pairAt(merges map[uint64]merged, left int32) (pair, bool) {
	if left < 0 || c.links[left].next < 0 {
		return pair{}, false
	}
	l, r := c.links[left].id, c.links[c.links[left].next].id
	m, ok := merges[pairKey(l, r)]
	return pair{merged: m, left: left, wantLeft: l, wantRight: r}, ok
}

// pairHeap orders pairs by rank, then from left to right.
type pairHeap []pair

func (h pairHeap) Len() int { return len(h) }
func (h pairHeap) Less(i, j int) bool {
	return h[i].rank < h[j].rank || h[i].rank == h[j].rank && h[i].left < h[j].left
}
func (h pairHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *pairHeap) Push(x any)   { *h = append(*h, x.(pair)) }
func (h *pairHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
