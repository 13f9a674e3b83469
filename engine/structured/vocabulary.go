package structured

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"slipway/engine/sample"
)

// Vocabulary is the tokens of a tokenizer, laid out for masks. It is safe for concurrent use.
type Vocabulary struct {
	tokens  int // ids are below it
	bytesOf func(int32) []byte
	all     *pieces

	// Behind one of these beginnings of a string without a pattern: what stays inside it.
	inside    inside // between two characters
	escaped   inside // behind a backslash
	unescaped inside // between two characters, without escapes: in a name
}

// NewVocabulary sorts the tokens with ids in [0, tokens). bytesOf gives the bytes of an id, empty where there is none
// or where it must not come, such as control tokens. It fails where a byte has no token of its own, because then a
// reply could get stuck.
func NewVocabulary(tokens int, bytesOf func(int32) []byte) (*Vocabulary, error) {
	var ids []int32
	var single [256]bool
	for id := range int32(tokens) {
		if b := bytesOf(id); len(b) > 0 {
			ids = append(ids, id)
			if len(b) == 1 {
				single[b[0]] = true
			}
		}
	}
	for b, ok := range single {
		if !ok && neededByte(byte(b)) {
			return nil, fmt.Errorf("the tokenizer has no token for the byte 0x%02x alone, so a reply cannot be "+
				"held to a schema", b)
		}
	}
	v := &Vocabulary{tokens: tokens, bytesOf: bytesOf, all: newPieces(ids, bytesOf)}
	v.inside = v.insideOf(textState{}, true)
	v.escaped = v.insideOf(textState{characters: 1, escape: 1}, true)
	v.unescaped = v.insideOf(textState{}, false)
	return v, nil
}

// neededByte reports whether JSON may hold b.
func neededByte(b byte) bool { return b == '\n' || b >= ' ' && b < 0xc0 || b >= 0xc2 && b <= 0xf4 }

// Tokens is the number of ids that masks have room for.
func (v *Vocabulary) Tokens() int { return v.tokens }

// pieces are tokens in the order of their bytes.
type pieces struct {
	ids    []int32
	bytes  [][]byte
	common []uint16 // bytes that a token begins with as the one before it does
	first  [257]int32
}

func newPieces(ids []int32, bytesOf func(int32) []byte) *pieces {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b int32) int { return bytes.Compare(bytesOf(a), bytesOf(b)) })
	p := &pieces{ids: ids, bytes: make([][]byte, len(ids)), common: make([]uint16, len(ids))}
	for i, id := range ids {
		p.bytes[i] = bytesOf(id)
		if i > 0 {
			p.common[i] = uint16(min(commonBytes(p.bytes[i-1], p.bytes[i]), 1<<16-1))
		}
	}
	at := 0
	for b := range 256 {
		for at < len(ids) && int(p.bytes[at][0]) < b {
			at++
		}
		p.first[b] = int32(at)
	}
	p.first[256] = int32(len(ids))
	return p
}

func commonBytes(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// skip gives the first token behind i that does not begin with the first depth+1 bytes of token i.
func (p *pieces) skip(i, depth int) int {
	if depth == 0 {
		return int(p.first[int(p.bytes[i][0])+1])
	}
	end := i + 1
	for ; end < len(p.ids) && int(p.common[end]) > depth; end++ {
		if end == i+nearby {
			prefix := p.bytes[i][:depth+1]
			return end + sort.Search(int(p.first[int(prefix[0])+1])-end, func(n int) bool {
				return !bytes.HasPrefix(p.bytes[end+n], prefix)
			})
		}
	}
	return end
}

// nearby is how many tokens are looked at one by one before a search.
const nearby = 16

// walk calls step for every byte of every token that it must, and leaf for every token whose bytes were all taken.
// step takes the byte of token i at a depth, after the bytes before it in the same token; false: no token with this
// beginning may come.
func (p *pieces) walk(step func(i, depth int, b byte) bool, leaf func(i int)) {
	for i := 0; i < len(p.ids); {
		piece, depth := p.bytes[i], int(p.common[i])
		for depth < len(piece) && step(i, depth, piece[depth]) {
			depth++
		}
		if depth == len(piece) {
			leaf(i)
			i++
			continue
		}
		i = p.skip(i, depth)
	}
}

// mostCounted: tokens with more characters are listed one by one.
const mostCounted = 32

// inside is the tokens that stay inside a string, by the characters that they begin in it.
type inside struct {
	upTo   []sample.Mask // with at most so many characters; the last: with any number
	longer []longToken   // those with more than mostCounted
	// tokens that close the string somewhere: the only ones that a step has to walk
	closing *pieces
}

type longToken struct {
	id         int32
	characters int
}

// insideOf walks tokens from one beginning of a string.
func (v *Vocabulary) insideOf(at textState, escapes bool) inside {
	counts := map[int][]int32{}
	var closing []int32
	v.all.walkText(anyText, at, escapes, func(i int, end textState) {
		n := int(end.characters - at.characters)
		counts[n] = append(counts[n], v.all.ids[i])
	}, func(i int) { closing = append(closing, v.all.ids[i]) })
	in := inside{}
	mask := sample.NewMask(v.tokens)
	for n := range mostCounted + 1 {
		for _, id := range counts[n] {
			mask.Allow(id)
		}
		delete(counts, n)
		in.upTo = append(in.upTo, slices.Clone(mask))
	}
	for n, ids := range counts {
		for _, id := range ids {
			mask.Allow(id)
			in.longer = append(in.longer, longToken{id, n})
		}
	}
	in.upTo = append(in.upTo, mask)
	in.closing = newPieces(closing, v.bytesOf)
	return in
}

// walkText walks tokens inside a string, from at on: open is called for a token that stays inside, with the state
// behind it, and closing for one that closes the string. It gives the number of bytes that it looked at.
func (p *pieces) walkText(t *texts, at textState, escapes bool, open func(i int, end textState),
	closing func(i int)) (walked int) {
	states := []textState{at}
	closedAt := 1 << 30
	p.walk(func(_, depth int, b byte) bool {
		walked++
		if depth >= closedAt {
			return true
		}
		closedAt = 1 << 30
		states = append(states[:depth+1], states[depth])
		if b == '\\' && !escapes {
			return false
		}
		switch t.step(&states[depth+1], b) {
		case inString:
			return true
		case closed:
			closedAt = depth + 1
			return true
		}
		return false
	}, func(i int) {
		if len(p.bytes[i]) >= closedAt {
			closing(i)
			return
		}
		open(i, states[len(p.bytes[i])])
	})
	return walked
}

// mask gives the tokens that stay inside with at most so many characters more; negative: any number. It is a copy.
func (in *inside) mask(characters int) sample.Mask {
	if characters < 0 {
		return slices.Clone(in.upTo[len(in.upTo)-1])
	}
	if characters <= mostCounted {
		return slices.Clone(in.upTo[characters])
	}
	mask := slices.Clone(in.upTo[mostCounted])
	for _, long := range in.longer {
		if long.characters <= characters {
			mask.Allow(long.id)
		}
	}
	return mask
}
