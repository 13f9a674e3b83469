package dflash

import (
	"context"
	"errors"
	"slices"

	"slipway/engine/device"
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

	// Off is called once where drafting ends for all, because the draft's values do not fit into the device's operands;
	// nil: nothing is called.
	Off func(error)
	off bool

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

// sequence is what the draft knows of one sequence: context rows of positions first to end, of which the ring has keys
// and values of [known, ready). It implements draft.Context.
type sequence struct {
	p     *Proposer
	seq   Sequence
	ring  int
	known int
	ready int
	fresh []float32 // rows [ready, end), [n, Hidden]; without them, those of a state are read from kept

	first int
	kept  []uint16 // rows [first, end) in BF16, for states: at least the last Window of them

	taps []float32 // of the pass under way, of its last rows
	own  []float32 // room for those of a short pass
}

// Begin implements draft.Proposer. Without a section the draft begins anew after what the sequence has.
func (p *Proposer) Begin(seq pass.Sequence, _ []int32) draft.Context {
	s := &sequence{p: p, seq: seq.(Sequence), ring: p.net().take()}
	s.restart(seq.Len())
	if section := s.seq.Section(); section.Rows != nil && section.First+len(
		section.Rows)/p.config.RowBytes() == seq.Len() {
		s.restart(section.First)
		for i := 0; i < len(section.Rows); i += 2 {
			s.kept = append(s.kept, uint16(section.Rows[i])|uint16(section.Rows[i+1])<<8)
		}
	}
	s.seq.OnSave(s.section)
	return s
}

// restart forgets all, so that the draft begins at a position.
func (s *sequence) restart(at int) {
	s.kept, s.fresh = s.kept[:0], s.fresh[:0]
	s.first, s.known, s.ready = at, at, at
}

// End implements draft.Context.
func (s *sequence) End() {
	s.p.net().give(s.ring)
	s.seq.OnSave(nil)
}

func (n *Network) take() int {
	last := len(n.idle) - 1
	if last < 0 {
		panic("dflash: more sequences than the draft was loaded for")
	}
	ring := n.idle[last]
	n.idle = n.idle[:last]
	return ring
}

func (n *Network) give(ring int) { n.idle = append(n.idle, ring) }

// Want implements draft.Context: of a long segment the taps of the last Window rows.
func (s *sequence) Want(segment *pass.Segment) {
	if s.p.off {
		return
	}
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

// Kept implements draft.Context: it computes context rows of the tokens, which are the segment's first ones. Those of a
// prompt get their keys and values at once, those of a step together with the next block.
func (s *sequence) Kept(ctx context.Context, tokens []int32) error {
	if len(tokens) == 0 || s.p.off {
		return nil
	}
	return s.p.unlessBeyond(s.keep(ctx, tokens))
}

// unlessBeyond ends drafting where a value is beyond the range of the device's operands: replies go on without it.
func (p *Proposer) unlessBeyond(err error) error {
	var beyond *device.RangeError
	if !errors.As(err, &beyond) {
		return err
	}
	if p.off = true; p.Off != nil {
		p.Off(err)
	}
	return nil
}

func (s *sequence) keep(ctx context.Context, tokens []int32) error {
	c := s.p.config
	width := len(c.Taps) * c.Hidden
	rows := min(len(tokens), len(s.taps)/width)
	if end := s.seq.Len() - rows; end != s.end() {
		s.restart(end)
	}
	have := len(s.fresh)
	if err := s.remember(ctx, have/c.Hidden+rows); err != nil {
		return err
	}
	have = len(s.fresh)
	s.fresh = slices.Grow(s.fresh, rows*c.Hidden)[:have+rows*c.Hidden]
	if err := s.p.net().Context(ctx, s.fresh[have:], s.taps[:rows*width]); err != nil {
		return err
	}
	for _, v := range s.fresh[have:] {
		s.kept = append(s.kept, weights.BF16Of(v))
	}
	if len(s.kept)/c.Hidden > c.Window+slackRows {
		extra := len(s.kept)/c.Hidden - c.Window
		s.kept = append(s.kept[:0], s.kept[extra*c.Hidden:]...)
		s.first += extra
	}
	return s.remember(ctx, len(s.fresh)/c.Hidden)
}

// slackRows are kept beyond the window, so that rows are rarely moved.
const slackRows = 256

// remember stores the keys and values of rows that wait for them, where they are more than a block takes along.
func (s *sequence) remember(ctx context.Context, rows int) error {
	h := s.p.config.Hidden
	if s.ready+len(s.fresh)/h == s.end() && rows <= shortSegment {
		return nil
	}
	if len(s.fresh) == 0 && s.ready < s.end() { // of a state
		for _, b := range s.kept[(s.ready-s.first)*h:] {
			s.fresh = append(s.fresh, weights.OfBF16(b))
		}
	}
	if err := s.p.net().remember(ctx, s.ring, s.ready, s.fresh); err != nil {
		return err
	}
	s.ready, s.fresh = s.end(), s.fresh[:0]
	if cap(s.fresh) > 2*shortSegment*h {
		s.fresh = nil
	}
	return nil
}

// end is the position after the last context row.
func (s *sequence) end() int { return s.first + len(s.kept)/s.p.config.Hidden }

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
	if p.off {
		return nil
	}
	return p.unlessBeyond(p.propose(ctx, asks))
}

func (p *Proposer) propose(ctx context.Context, asks []draft.Ask) error {
	n, h := p.net(), p.config.Hidden
	p.blocks = p.blocks[:0]
	room := contextRows
	for i := range asks {
		s := asks[i].Context.(*sequence)
		if s.end() != s.seq.Len() {
			continue
		}
		rows := len(s.fresh) / h
		if rows > room {
			rows = shortSegment + 1 // more than this pass takes
		}
		if err := s.remember(ctx, rows); err != nil {
			return err
		}
		room -= len(s.fresh) / h
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
