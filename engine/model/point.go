package model

import (
	"slipway/engine/device"
	"slipway/engine/memory"
	"slipway/engine/pass"
)

// Point is a restore point: a sequence as it was after Len tokens. It implements pass.State. It refers to the attention
// pages that it shares with its sequence and holds a copy of the recurrent state; it never copies attention memory. A
// point with a tape also serves every length up to Reach.
//
// The MTP head's slots are shared without the last one, which pairs with the next token, and that may differ. The final
// hidden row of the last token is kept, so that the last slot can be computed.
type Point struct {
	net             *Network
	len             int
	mtpFrom, mtpLen int
	pages, mtpPages []int32 // to the reach
	state           device.State
	tape            device.Tape // nil: none
	hidden          []float32   // final row of token Reach-1, or empty
	section         pass.Section
}

// Len is the number of tokens after which the state was saved.
func (p *Point) Len() int { return p.len }

// Reach is the longest length that it can be brought to.
func (p *Point) Reach() int {
	if p.tape == nil {
		return p.len
	}
	return p.len + p.tape.Len()
}

// Bytes is what the point holds without shared pages.
func (p *Point) Bytes() int64 {
	bytes := p.state.Bytes() + 4*int64(len(p.hidden)) + int64(len(p.section.Rows))
	if p.tape != nil {
		bytes += p.tape.Bytes()
	}
	return bytes
}

// Pages are the attention pages that the point refers to, to its reach. Not to be changed.
func (p *Point) Pages() []int32 { return p.pages }

// Hidden is the final row of the last token within reach, [Hidden]; nil where it is not known.
func (p *Point) Hidden() []float32 { return p.hidden }

// PointBytes is the size of a point without a tape and shared pages.
func (n *Network) PointBytes() int64 {
	return n.StateBytes() + n.RowBytes() + int64(n.opt.SectionRow)*int64(n.opt.SectionRows)
}

// StateBytes is the size of a state as Point.ReadState gives it.
func (n *Network) StateBytes() int64 {
	return 4 * int64(n.stateGeometry.Layers) * int64(stateFloats(n.stateGeometry))
}

// stateFloats is one layer's share of a state.
func stateFloats(g device.StateGeometry) int {
	return g.ValueHeads*g.ValueDim*g.KeyDim + (g.ConvTaps-1)*g.ConvChannels
}

// RowBytes is the size of the final hidden row that points keep for the MTP head; 0 where it does not draft.
func (n *Network) RowBytes() int64 {
	if n.mtp == nil {
		return 0
	}
	return 4 * int64(n.config.Hidden)
}

// PageBytes is Network.PageBytes before there is a network: of a checkpoint of c, with a draft, on dev.
func PageBytes(dev device.Device, c *Config, f device.KVFormat, draft Draft) int64 {
	bytes := dev.KVBytes(trunkKV(c, 1, f))
	if draft == DraftMTP {
		bytes += dev.KVBytes(mtpKV(c, 1))
	}
	return bytes
}

func trunkKV(c *Config, pages int, f device.KVFormat) device.KVGeometry {
	return device.KVGeometry{Layers: c.AttentionLayers(), Heads: c.KVHeads, HeadDim: c.HeadDim, Pages: pages, Format: f}
}

func mtpKV(c *Config, pages int) device.KVGeometry {
	return device.KVGeometry{Layers: 1, Heads: c.KVHeads, HeadDim: c.HeadDim, Pages: pages}
}

// PageBytes is the size of a page over all attention layers, the MTP head's page of the same number included.
func (n *Network) PageBytes() int64 {
	bytes := n.kv.Bytes() / int64(n.pages.Len())
	if n.mtp != nil {
		bytes += n.mtp.kv.Bytes() / int64(n.mtpPages.Len())
	}
	return bytes
}

// Pages are the attention pages that a point saved now would refer to, a copy.
func (s *Sequence) Pages() []int32 {
	return append([]int32(nil), s.pages.ids[:pagesOf(s.len)]...)
}

func pagesOf(tokens int) int { return (tokens + device.PageTokens - 1) / device.PageTokens }

// TapeLen is how many of the latest tokens Rewind can take back, and a point with a tape covers.
func (s *Sequence) TapeLen() int {
	return min(s.state.TapeLen(), s.len)
}

// TapeBytes is about what a tape of n tokens takes: per layer the gates, a key row, a value row and a row before the
// convolution.
func (n *Network) TapeBytes(tokens int) int64 {
	g := n.stateGeometry
	return 4 * int64(tokens) * int64(g.Layers) * int64(2*g.ValueHeads+g.KeyHeads*g.KeyDim+g.ValueHeads*g.ValueDim+
		g.ConvChannels)
}

// Rewind takes the last tokens back, tokens in [0, TapeLen]: the sequence is what it was before them, bit for bit.
func (s *Sequence) Rewind(tokens int) {
	if tokens == 0 {
		return
	}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if !s.open || s.lost || tokens < 0 || tokens > s.TapeLen() {
		panic("model: Rewind of a closed or lost sequence, or past its tape")
	}
	s.state.Rewind(tokens)
	s.len -= tokens
	s.last = s.last[:0]
	s.mtpFrom, s.mtpLen = keptSlots(s.mtpFrom, s.mtpLen, s.len)
}

// keptSlots are the known slots of an MTP head that a prefix of tokens shares with every continuation.
func keptSlots(from, len, tokens int) (int, int) {
	shared := memory.MTPShared(tokens)
	return min(from, shared), min(len, shared)
}

// Save keeps the sequence as it is now, in a *Point that must be released. With tape it keeps its tape too, if it has
// one, so that the point serves every length from Len to Reach. Errors: ErrSequenceLost, or the device's for want of
// memory.
func (s *Sequence) Save(tape bool) (pass.State, error) {
	n := s.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if !s.open {
		panic("model: Save of a closed sequence")
	}
	if s.lost {
		return nil, ErrSequenceLost
	}
	if tape && s.TapeLen() > 0 {
		base, kept, err := s.state.CutTape()
		if err != nil {
			return nil, err
		}
		return s.point(base, kept), nil
	}
	state, err := n.dev.State(n.stateGeometry)
	if err != nil {
		return nil, err
	}
	state.Copy(s.state)
	return s.point(state, nil), nil
}

func (s *Sequence) point(state device.State, tape device.Tape) *Point {
	p := &Point{net: s.net, len: s.len, state: state, tape: tape, hidden: append([]float32(nil), s.last...)}
	if tape != nil {
		p.len -= tape.Len()
	}
	if s.onSave != nil {
		p.section = s.onSave()
	}
	p.mtpFrom, p.mtpLen = keptSlots(s.mtpFrom, s.mtpLen, s.len)
	p.pages, p.mtpPages = s.pages.share(s.len), s.mtp.share(p.mtpLen-p.mtpFrom)
	return p
}

// share refers to the pages that hold positions [0, n).
func (t *table) share(n int) []int32 {
	if t.book == nil {
		return nil
	}
	ids := append([]int32(nil), t.ids[:pagesOf(n)]...)
	t.book.Share(ids)
	return ids
}

// Restore makes the sequence what it was, or another sequence of the same network was, after at tokens, in [Len, Reach]
// of the point: every later logit is equal bit for bit. Beyond Len the tape is replayed. The point stays good.
func (s *Sequence) Restore(state pass.State, at int) {
	n, p := s.net, state.(*Point)
	if p.net != n || !s.open || at < p.len || at > p.Reach() {
		panic("model: Restore of another network's point, into a closed sequence, or past the point's reach")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s.pages.replace(p.pages[:pagesOf(at)])
	s.mtpFrom, s.mtpLen = keptSlots(p.mtpFrom, p.mtpLen, at)
	s.mtp.replace(p.mtpPages[:min(len(p.mtpPages), pagesOf(s.mtpLen-s.mtpFrom))])
	s.state.Copy(p.state)
	if at > p.len {
		s.state.Replay(p.tape, at-p.len)
	}
	s.last = s.last[:0]
	if at == p.Reach() {
		s.last = append(s.last, p.hidden...)
	}
	s.section = n.cutSection(p.section, at)
	s.len, s.lost = at, false
}

func (t *table) replace(ids []int32) {
	if t.book == nil {
		return
	}
	t.book.Share(ids)
	t.book.Drop(t.ids)
	t.ids = append(t.ids[:0], ids...)
}

// Release gives the point's references and state back, once.
func (p *Point) Release() {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.pages.Drop(p.pages)
	if p.mtpPages != nil {
		p.net.mtpPages.Drop(p.mtpPages)
	}
	p.state.Release()
	if p.tape != nil {
		p.tape.Release()
	}
	p.pages, p.mtpPages = nil, nil
}
