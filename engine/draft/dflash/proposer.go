package dflash

import (
	"context"
	"slices"

	"slipway/engine/draft"
	"slipway/engine/pass"
	"slipway/engine/weights"
)

// Sequence is a sequence of a network whose segments give taps.
type Sequence interface {
	pass.Sequence
	// Section is what the state had that the sequence was restored from; zero where it had none, or there was none.
	Section() pass.Section
	// OnSave has states that are saved from now on carry a section.
	OnSave(section func() pass.Section)
}

// Proposer drafts with a DFlash2 model. It implements draft.Proposer.
type Proposer struct {
	most   int
	config Config
	net    func() *Network // the loaded draft; another one after the model was unloaded

	chunk  []float32 // taps of a prefill pass
	blocks []block
	ids    []int32
	logits []float32
}

// NewProposer makes a proposer of most tokens at a time, in [1, Block-1].
func NewProposer(c Config, net func() *Network, most int) *Proposer {
	if most < 1 || most > c.Block-1 {
		panic("dflash: a proposal longer than the draft's block")
	}
	return &Proposer{most: most, config: c, net: net}
}

// Most implements draft.Proposer.
func (p *Proposer) Most() int { return p.most }

// shortSegment is the longest segment of decode and verification.
const shortSegment = draft.MostTokens + 1

// sequence is what the draft knows of one sequence: context rows of positions first to first+len(kept), of which the
// ring has keys and values of [known, ready), and fresh the rest in f32. It implements draft.Context.
type sequence struct {
	p     *Proposer
	seq   Sequence
	ring  int
	known int
	ready int
	fresh []float32 // rows [ready, end), [n, Hidden]

	first int
	kept  []uint16 // rows [first, end) in BF16, for states: at least the last Window of them

	taps []float32 // of the pass under way, of its last rows
	own  []float32 // room for those of a short pass
}

// Begin implements draft.Proposer. Without a section the draft begins anew behind what the sequence has. Where no ring
// is free the context drafts nothing.
func (p *Proposer) Begin(seq pass.Sequence, _ []int32) draft.Context {
	n := p.net()
	s := &sequence{p: p, seq: seq.(Sequence), ring: n.take(), known: seq.Len(), ready: seq.Len(), first: seq.Len()}
	h := p.config.Hidden
	if section := s.seq.Section(); section.Rows != nil && section.First+len(section.Rows)/(2*h) == seq.Len() {
		s.first, s.known, s.ready = section.First, section.First, section.First
		for i := 0; i < len(section.Rows); i += 2 {
			b := uint16(section.Rows[i]) | uint16(section.Rows[i+1])<<8
			s.kept, s.fresh = append(s.kept, b), append(s.fresh, weights.OfBF16(b))
		}
	}
	s.seq.OnSave(s.section)
	return s
}

// End implements draft.Context.
func (s *sequence) End() {
	if s.ring >= 0 {
		s.p.net().give(s.ring)
		s.ring = -1
	}
	s.seq.OnSave(nil)
}

func (n *Network) take() int {
	last := len(n.idle) - 1
	if last < 0 {
		return -1
	}
	ring := n.idle[last]
	n.idle = n.idle[:last]
	return ring
}

func (n *Network) give(ring int) { n.idle = append(n.idle, ring) }

// Want implements draft.Context: of a long segment the taps of the last Window rows.
func (s *sequence) Want(segment *pass.Segment) {
	rows := min(len(segment.Tokens), s.p.config.Window)
	n := rows * len(s.p.config.Taps) * s.p.config.Hidden
	room := &s.own
	if rows > shortSegment {
		room = &s.p.chunk // of the one prefill of a pass
	}
	*room = slices.Grow((*room)[:0], n)[:n]
	s.taps = *room
	segment.Taps = s.taps
}

// Kept implements draft.Context: it computes context rows of the tokens, which are the segment's first ones.
func (s *sequence) Kept(ctx context.Context, tokens []int32) error {
	if len(tokens) == 0 {
		return nil
	}
	c := s.p.config
	width := len(c.Taps) * c.Hidden
	rows := min(len(tokens), len(s.taps)/width)
	if end := s.seq.Len() - rows; end != s.end() {
		s.kept, s.fresh = s.kept[:0], s.fresh[:0]
		s.first, s.known, s.ready = end, end, end
	}
	have := len(s.fresh)
	s.fresh = slices.Grow(s.fresh, rows*c.Hidden)[:have+rows*c.Hidden]
	if err := s.p.net().Context(ctx, s.fresh[have:], s.taps[:rows*width]); err != nil {
		return err
	}
	for _, v := range s.fresh[have:] {
		s.kept = append(s.kept, weights.BF16Of(v))
	}
	s.forget()
	return nil
}

// end is the position behind the last context row.
func (s *sequence) end() int { return s.first + len(s.kept)/s.p.config.Hidden }

// forget drops what lies beyond the window. The rows for states are moved only when they take twice as much.
func (s *sequence) forget() {
	h, w := s.p.config.Hidden, s.p.config.Window
	if extra := len(s.fresh)/h - w; extra > 0 {
		s.fresh = append(s.fresh[:0], s.fresh[extra*h:]...)
		s.ready = s.end() - w
		s.known = s.ready
	}
	if len(s.kept) > 2*w*h {
		extra := len(s.kept)/h - w
		s.kept = append(s.kept[:0], s.kept[extra*h:]...)
		s.first += extra
	}
}

// section is what a state that is saved now carries: the last Window context rows in BF16, little-endian. Zero where
// the draft does not know the sequence to its end.
func (s *sequence) section() pass.Section {
	h := s.p.config.Hidden
	if s.end() != s.seq.Len() || len(s.kept) == 0 {
		return pass.Section{}
	}
	rows := s.kept[max(0, len(s.kept)-s.p.config.Window*h):]
	section := pass.Section{First: s.end() - len(rows)/h, Rows: make([]byte, 2*len(rows))}
	for i, b := range rows {
		section.Rows[2*i], section.Rows[2*i+1] = byte(b), byte(b>>8)
	}
	return section
}

// Propose implements draft.Proposer: one block pass for all asks, then the selector for each.
func (p *Proposer) Propose(ctx context.Context, asks []draft.Ask) error {
	n, h := p.net(), p.config.Hidden
	p.blocks = p.blocks[:0]
	room := contextRows
	for i := range asks {
		s := asks[i].Context.(*sequence)
		if s.ring < 0 || s.end() != s.seq.Len() {
			continue
		}
		if rows := len(s.fresh) / h; rows > min(room, shortSegment) {
			if err := n.remember(ctx, s.ring, s.ready, s.fresh); err != nil {
				return err
			}
			s.ready, s.fresh = s.end(), s.fresh[:0]
		} else {
			room -= rows
		}
		p.blocks = append(p.blocks, block{ask: i, ring: s.ring, known: s.known, start: s.end(), anchor: asks[i].Last,
			rows: min(asks[i].Most, p.most) + 1, ready: s.ready, fresh: s.fresh})
	}
	if len(p.blocks) == 0 {
		return nil
	}
	if err := n.block(ctx, p.blocks); err != nil {
		return err
	}
	for i := range p.blocks {
		b := &p.blocks[i]
		s := asks[b.ask].Context.(*sequence)
		s.ready, s.fresh = s.end(), s.fresh[:0]
		p.choose(n, b, &asks[b.ask])
	}
	return nil
}

// choose walks a block's rows from left to right.
func (p *Proposer) choose(n *Network, b *block, ask *draft.Ask) {
	before := b.anchor
	for r := range b.rows - 1 {
		p.ids, p.logits = n.candidates(b.selected+r, p.ids[:0], p.logits[:0])
		if p.ids[len(p.ids)-1] < 0 {
			return // a row with a NaN
		}
		n.score(b.selected+r, before, p.ids, p.logits)
		token, more := ask.Choose(draft.Row{IDs: p.ids, Logits: p.logits})
		if token == nil {
			return
		}
		*ask.Drafted = append(*ask.Drafted, *token)
		if !more {
			return
		}
		before = token.ID
	}
}
