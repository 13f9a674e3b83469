package structured

import (
	"slices"

	"slipway/engine/sample"
)

// Grammar is a compiled schema. It is safe for concurrent use.
type Grammar struct {
	root       *node
	vocabulary *Vocabulary
	patterns   map[*texts][]patternMasks // by state of the pattern
}

// patternMasks are the tokens that stay inside a string with a pattern, from one of its states.
type patternMasks struct {
	plain, escaped sample.Mask
	closing        *pieces
}

// mostPatternBytes bounds the bytes of tokens that are walked for the patterns of a schema, about half a second.
const mostPatternBytes = 40 << 20

// prepare computes the masks of the states of every pattern.
func (g *Grammar) prepare(nodes []*node, paths map[*texts]string) error {
	walked := 0
	for _, n := range nodes {
		for _, l := range n.own {
			if l.kind != stringKind || l.text.pattern == nil || g.patterns[l.text] != nil || l.least >= impossible {
				continue
			}
			masks := make([]patternMasks, len(l.text.pattern.next))
			for id := range masks {
				for _, at := range []textState{{pattern: int32(id)}, {pattern: int32(id), escape: 1}} {
					if at.escape == 1 && !l.text.pattern.escapes(int32(id)) {
						continue
					}
					mask, closing, bytes := g.vocabulary.patternMask(l.text, at)
					if walked += bytes; walked > mostPatternBytes {
						return refuse(paths[l.text], "has a pattern with too many states for the time that there is; "+
							"use a simpler one, or smaller bounds of length")
					}
					if at.escape == 1 {
						masks[id].escaped = mask
					} else {
						masks[id].plain, masks[id].closing = mask, closing
					}
				}
			}
			g.patterns[l.text] = masks
		}
	}
	return nil
}

// patternMask gives the tokens that stay inside, those that close the string, and the bytes that it looked at.
func (v *Vocabulary) patternMask(t *texts, at textState) (mask sample.Mask, closing *pieces, walked int) {
	mask = sample.NewMask(v.tokens)
	var ids []int32
	walked = v.all.walkText(t, at, true, func(i int, _ textState) { mask.Allow(v.all.ids[i]) },
		func(i int) { ids = append(ids, v.all.ids[i]) })
	return mask, newPieces(ids, v.bytesOf), walked
}

// mask gives the tokens that may come next.
func (g *Grammar) mask(s state, ends []int32) sample.Mask {
	var mask sample.Mask
	for _, k := range s {
		one := g.maskOf(k)
		if mask == nil {
			mask = one
			continue
		}
		for i, word := range one {
			mask[i] |= word
		}
	}
	if mask == nil {
		mask = sample.NewMask(g.vocabulary.tokens)
	}
	if s.complete() {
		for _, id := range ends {
			mask.Allow(id)
		}
	}
	return mask
}

// maskOf is mask of one stack.
func (g *Grammar) maskOf(k *stack) sample.Mask {
	v := g.vocabulary
	switch {
	case k.kind == extraFrame && k.text.plain():
		return g.walkString(k, v.unescaped.closing, v.unescaped.mask(-1))
	case k.kind != stringFrame || k.text.missing > 0 || k.text.escape > 1:
		return g.walk(k, sample.NewMask(v.tokens))
	case k.leaf.text.pattern != nil:
		masks := &g.patterns[k.leaf.text][k.text.pattern]
		if k.text.escape == 1 {
			return g.walkString(k, v.escaped.closing, slices.Clone(masks.escaped))
		}
		return g.walkString(k, masks.closing, slices.Clone(masks.plain))
	}
	left := -1
	if k.leaf.text.most >= 0 {
		left = k.leaf.text.most - int(k.text.characters)
	}
	in := &v.inside
	if k.text.escape == 1 {
		in = &v.escaped
	}
	return g.walkString(k, in.closing, in.mask(left))
}

// walk adds to mask the tokens that may come after a stack.
func (g *Grammar) walk(k *stack, mask sample.Mask) sample.Mask {
	states := make([]state, 1, 64)
	states[0] = state{k}
	g.vocabulary.all.walk(func(_, depth int, b byte) bool {
		return follow(&states, depth, b)
	}, func(i int) { mask.Allow(g.vocabulary.all.ids[i]) })
	return mask
}

// follow sets the state behind depth+1 bytes; false where none is left.
func follow(states *[]state, depth int, b byte) bool {
	if depth+1 == len(*states) {
		*states = append(*states, nil)
	}
	next := &(*states)[depth+1]
	*next = (*states)[depth].step(b, (*next)[:0])
	return len(*next) > 0
}

// walkString adds to mask those of the tokens that close the string or name in which k is. Up to the closing quote
// it follows the characters alone.
func (g *Grammar) walkString(k *stack, closing *pieces, mask sample.Mask) sample.Mask {
	t := anyText
	if k.kind == stringFrame {
		t = k.leaf.text
	}
	texts, states := []textState{k.text}, []state{nil}
	quote := 1 << 30 // depth of the closing quote
	closing.walk(func(i, depth int, b byte) bool {
		for len(states) <= depth+1 {
			texts, states = append(texts, textState{}), append(states, nil)
		}
		if depth > quote {
			return follow(&states, depth, b)
		}
		quote = 1 << 30
		texts[depth+1] = texts[depth]
		switch t.step(&texts[depth+1], b) {
		case inString:
			return true
		case closed:
			quote = depth
			states[depth+1] = k.close(string(closing.bytes[i][:depth]), states[depth+1][:0])
			return len(states[depth+1]) > 0
		}
		return false
	}, func(i int) { mask.Allow(closing.ids[i]) })
	return mask
}

// Follower holds one reply to a grammar. It belongs to one reply.
type Follower struct {
	g      *Grammar
	ends   []int32
	states []state // before the first token, and after each
	tokens []int32
}

// Follow begins a reply; ends are the tokens that end one, and begun is what is there of it before its first token.
func (g *Grammar) Follow(ends []int32, begun []byte) *Follower {
	now := begin(g.root)
	for _, b := range begun {
		now = now.step(b, nil)
	}
	return &Follower{g: g, ends: ends, states: []state{now}}
}

// Mask gives the tokens that may follow a reply's tokens. It may be asked in any order: what differs from the reply
// before is followed again. Where the reply does not fit the grammar, no token may follow.
func (f *Follower) Mask(reply []int32) sample.Mask {
	return f.g.mask(f.follow(reply), f.ends)
}

// Complete reports whether a reply of these tokens is whole.
func (f *Follower) Complete(reply []int32) bool { return f.follow(reply).complete() }

func (f *Follower) follow(reply []int32) state {
	same := 0
	for same < len(reply) && same < len(f.tokens) && reply[same] == f.tokens[same] {
		same++
	}
	f.tokens, f.states = f.tokens[:same], f.states[:same+1]
	for _, id := range reply[same:] {
		now := f.states[len(f.states)-1]
		for _, b := range f.g.vocabulary.bytesOf(id) {
			now = now.step(b, nil)
		}
		f.tokens, f.states = append(f.tokens, id), append(f.states, now)
	}
	return f.states[len(f.states)-1]
}

// Accepts reports whether text is a whole value of the grammar, written as a reply would be.
func (g *Grammar) Accepts(text string) bool {
	now := begin(g.root)
	for i := range len(text) {
		if now = now.step(text[i], nil); len(now) == 0 {
			return false
		}
	}
	return now.complete()
}
