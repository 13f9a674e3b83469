package draft

import (
	"context"
	"slices"

	"slipway/engine/pass"
	"slipway/profiles"
)

// Head is a network with an MTP head.
type Head interface {
	// MTP advances heads; rows are valid until the next pass.
	MTP(ctx context.Context, segments []pass.HeadSegment) ([][][]float32, error)
}

// HeadSequence is a sequence of such a network.
type HeadSequence interface {
	pass.Sequence
	MTPLen() int           // slots known; the head may begin after slot 0
	Last() []float32       // final row of the last token; empty where it is not known
	SetLast(row []float32) // gives it again after a rewind
}

// MostDepth is the deepest proposal of an MTP head: each token is drafted from the head's own row of the one before,
// for which it was not trained.
const MostDepth = profiles.MostMTPTokens

// keptPairs bounds the pairs that wait for their head pass beside a drafted step: a pass has room for 8 rows of a
// sequence beyond its prefill chunk.
const keptPairs = 8

// MTP drafts with the checkpoint's own multi-token prediction head. The head sees the rows after the trunk's final
// norm.
//
// A slot pairs the row of a position with the token after it, so that the last row waits for its token. Drafting adds
// slots of drafted tokens; those that were verified are computed again from the trunk's rows.
type MTP struct {
	head   Head
	depth  int
	hidden int       // size of a row
	chunk  []float32 // rows of a prefill pass

	segments []pass.HeadSegment
	asks     []int // of the segments
	live     []bool
}

// NewMTP makes a proposer of depth tokens, in [1, MostDepth], for a head with rows of hidden values.
func NewMTP(head Head, hidden, depth int) *MTP {
	if depth < 1 || depth > MostDepth {
		panic("draft: a depth of an MTP head beyond 1 to 4")
	}
	return &MTP{head: head, hidden: hidden, depth: depth}
}

// Most implements Proposer.
func (m *MTP) Most() int { return m.depth }

// mtpContext: rows holds the rows of positions at, at+1, ... that are not paired yet, and tokens the tokens after them
// but for the last one's.
type mtpContext struct {
	m      *MTP
	seq    HeadSequence
	at     int
	rows   []float32
	tokens []int32
	pass   []float32 // rows of the pass under way
	own    []float32 // room for those of a short pass
	row    []float32 // the head's own last row, while it drafts
	out    []float32 // room for the head's rows
}

// Begin implements Proposer. A few rows at the end may not be known, as after a restore within a tape: zeros stand for
// them, so that the head sees those tokens alone. Where more is missing the head begins anew after it.
func (m *MTP) Begin(seq pass.Sequence, prompt []int32) Context {
	c := &mtpContext{m: m, seq: seq.(HeadSequence)}
	n := seq.Len()
	if n == 0 {
		return c
	}
	c.at = n - 1
	if missing := c.at - c.seq.MTPLen(); missing <= keptPairs {
		c.at -= missing
	}
	c.tokens = append(c.tokens, prompt[c.at+1:n]...)
	c.rows = make([]float32, (n-c.at)*m.hidden)
	copy(c.rows[(n-1-c.at)*m.hidden:], c.seq.Last())
	return c
}

func (c *mtpContext) Want(segment *pass.Segment) {
	n := len(segment.Tokens) * c.m.hidden
	room := &c.own
	if len(segment.Tokens) > keptPairs {
		room = &c.m.chunk // of the one prefill of a pass
	}
	*room = slices.Grow((*room)[:0], n)[:n]
	c.pass = *room
	segment.Hidden = c.pass
}

// End implements Context: what it holds is its own.
func (c *mtpContext) End() {}

func (c *mtpContext) Kept(ctx context.Context, tokens []int32) error {
	h := c.m.hidden
	if len(tokens) == 0 {
		return nil
	}
	if len(c.rows) == 0 { // the first token is paired already, or begins the sequence
		c.at = c.seq.Len() - len(tokens)
		c.tokens = append(c.tokens[:0], tokens[1:]...)
	} else {
		c.tokens = append(c.tokens, tokens...)
	}
	last := c.pass[(len(tokens)-1)*h : len(tokens)*h]
	c.seq.SetLast(last)
	if len(c.tokens) <= keptPairs/2 { // the next proposal pairs them
		c.rows = append(c.rows, c.pass[:len(tokens)*h]...)
		return nil
	}
	return c.pair(ctx, len(tokens))
}

// pair runs the head over all pairs that are complete, with the first rows of the pass under way after those that
// wait.
func (c *mtpContext) pair(ctx context.Context, fresh int) error {
	h := c.m.hidden
	waiting := len(c.rows) / h
	slot, tokens := c.at, c.tokens
	run := func(n int, rows []float32) error {
		if n == 0 {
			return nil
		}
		c.m.segments = append(c.m.segments[:0], pass.HeadSegment{Seq: c.seq, Slot: slot, Tokens: tokens[:n],
			Hidden: rows})
		_, err := c.m.head.MTP(ctx, c.m.segments)
		slot, tokens = slot+n, tokens[n:]
		return err
	}
	err := run(min(waiting, len(tokens)), c.rows)
	if err == nil {
		err = run(len(tokens), c.pass[(fresh-1-len(tokens))*h:])
	}
	c.rows = append(c.rows[:0], c.pass[(fresh-1)*h:fresh*h]...)
	c.at, c.tokens = slot, c.tokens[:0]
	return err
}

// Propose implements Proposer: one pass of all heads pairs what is complete and gives the first tokens, one pass more
// each the next.
func (m *MTP) Propose(ctx context.Context, asks []Ask) error {
	m.live = append(m.live[:0], make([]bool, len(asks))...)
	for i := range m.live {
		m.live[i] = true
	}
	for depth := 0; ; depth++ {
		m.segments, m.asks = m.segments[:0], m.asks[:0]
		for i := range asks {
			if c := asks[i].Context.(*mtpContext); m.live[i] && depth < asks[i].Most {
				m.segments, m.asks = append(m.segments, c.next(&asks[i], depth)), append(m.asks, i)
			}
		}
		if len(m.segments) == 0 {
			return nil
		}
		rows, err := m.head.MTP(ctx, m.segments)
		if err != nil {
			return err
		}
		for s, i := range m.asks {
			c := asks[i].Context.(*mtpContext)
			c.row = c.out[len(c.out)-m.hidden:]
			token, more := asks[i].Choose(Row{Logits: rows[s][0]})
			if token != nil {
				*asks[i].Drafted = append(*asks[i].Drafted, *token)
			}
			m.live[i] = more && token != nil
		}
	}
}

// next is a context's segment of the head pass that gives the token at depth.
func (c *mtpContext) next(ask *Ask, depth int) pass.HeadSegment {
	s := pass.HeadSegment{Seq: c.seq, Logits: pass.LogitsLast}
	if depth == 0 {
		c.tokens = append(c.tokens, ask.Last)
		s.Slot, s.Tokens, s.Hidden = c.at, c.tokens, c.rows
		c.at += len(c.tokens)
		c.rows = c.rows[:0] // read before the next pass of the sequence
	} else {
		drafted := *ask.Drafted
		c.tokens = append(c.tokens[:0], drafted[len(drafted)-1].ID)
		s.Slot, s.Tokens, s.Hidden = c.at+depth-1, c.tokens, slices.Clone(c.row)
	}
	n := len(s.Tokens) * c.m.hidden
	c.out = slices.Grow(c.out[:0], n)[:n]
	s.HiddenOut = c.out
	return s
}
