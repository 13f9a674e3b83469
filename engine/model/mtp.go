package model

import (
	"context"
	"fmt"

	"slipway/engine/device"
	"slipway/engine/pass"
)

// MTP advances the MTP head of a network that was loaded with it. Results and errors as Forward, but after an error a
// head may have lost its slots from its segment's Slot on. The head's pages are its own: dropping slots never touches
// the trunk. Source: spec of the MTP head; the embedding comes first in the pair.
func (n *Network) MTP(ctx context.Context, segments []pass.HeadSegment) ([][][]float32, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mtp == nil {
		panic("model: MTP of a network that was loaded without its head")
	}
	if len(segments) == 0 {
		return nil, ctx.Err()
	}
	if err := n.prepareMTP(ctx, segments); err != nil {
		return nil, err
	}
	n.recordMTP(segments)
	if err := n.run(ctx); err != nil {
		return nil, fmt.Errorf("a pass of %d MTP rows: %w", len(n.work.tokens), err)
	}
	for i := range segments {
		g := &segments[i]
		s := g.Seq.(*Sequence)
		s.mtpLen = g.Slot + len(g.Tokens)
		s.mtp.wrote(g.Slot-s.mtpFrom, s.mtpLen-s.mtpFrom)
		n.copyHidden(g.HiddenOut, i)
	}
	return n.results(len(segments)), nil
}

func (n *Network) prepareMTP(ctx context.Context, segments []pass.HeadSegment) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &n.work
	n.segments, w.tokens, w.indices = n.segments[:0], w.tokens[:0], w.indices[:0]
	for i := range segments {
		g := &segments[i]
		s := g.Seq.(*Sequence)
		for j := range i {
			if segments[j].Seq == s {
				panic("model: a sequence twice in a pass")
			}
		}
		if s.net != n || !s.open || len(g.Tokens) == 0 || len(g.Hidden) < len(g.Tokens)*n.config.Hidden || g.Slot < 0 {
			panic("model: MTP of a closed or foreign sequence, of no tokens, or without their hidden rows")
		}
		if end := g.Slot + len(g.Tokens); end > n.opt.WindowTokens {
			return &WindowError{Len: g.Slot, Tokens: len(g.Tokens), Window: n.opt.WindowTokens}
		}
		if err := n.layRows(g.Tokens, g.Logits); err != nil {
			return err
		}
		if g.Slot > s.mtpLen || g.Slot < s.mtpFrom {
			s.mtp.drop()
			s.mtpFrom = g.Slot
		}
		s.mtpLen = g.Slot
		start := g.Slot - s.mtpFrom // rotary attention sees distances alone
		if err := s.mtp.reserve(start, start+len(g.Tokens)); err != nil {
			return err
		}
		n.segments = append(n.segments, device.Segment{Row: len(w.tokens) - len(g.Tokens), N: len(g.Tokens),
			Start: start, Pages: s.mtp.ids})
	}
	w.best.k = 0
	return w.growLogits(n, len(w.indices))
}

func (n *Network) recordMTP(segments []pass.HeadSegment) {
	w, p, c, m := &n.work, n.pass, n.config, n.mtp
	hidden := false
	for i := range segments {
		g := n.segments[i]
		copy(w.y.Floats()[g.Row*c.Hidden:], segments[i].Hidden[:g.N*c.Hidden])
		hidden = hidden || segments[i].HiddenOut != nil
	}
	rows := len(w.tokens)
	p.Begin(n.segments)
	p.Embed(w.x, n.embed, w.tokens)
	p.Rotation(w.rotation, n.inverse)
	p.RMSNorm(w.pair, w.x, m.embedNorm, c.Eps, rows, 0)
	p.RMSNorm(w.pair, w.y, m.hiddenNorm, c.Eps, rows, c.Hidden)
	p.Linear(w.pair, m.fc, rows)
	n.recordLayer(&m.layer, m.kv)
	n.recordHead(m.norm, hidden)
}
