package model

import (
	"slipway/engine/device"
	"slipway/engine/pass"
)

// best holds the largest logits of a pass.
type best struct {
	k       int // of the pass under way; 0: nothing is chosen
	buffers map[int][2]device.Buffer
	first   []int // row of the logits with which each segment begins, and their number after the last
}

// wanted sets k to the largest Top of the segments.
func (b *best) wanted(n *Network, segments []pass.Segment) {
	b.k = 0
	for i := range segments {
		if segments[i].Logits != pass.LogitsNone {
			b.k = max(b.k, min(segments[i].Top, n.config.VocabSize))
		}
	}
}

// grow makes room for rows rows of k. The buffers of each k stay: 8 bytes a row and place.
func (b *best) grow(n *Network, rows int) error {
	if b.k == 0 {
		return nil
	}
	have := b.buffers[b.k]
	if have[0] != nil && have[0].Rows() >= rows {
		return nil
	}
	var fresh [2]device.Buffer
	for i := range fresh {
		var err error
		if fresh[i], err = n.dev.Buffer(max(rows, n.opt.MaxSequences), b.k); err != nil {
			if i > 0 {
				fresh[0].Release()
			}
			return err
		}
	}
	for _, old := range have {
		if old != nil {
			old.Release()
		}
	}
	if b.buffers == nil {
		b.buffers = map[int][2]device.Buffer{}
	}
	b.buffers[b.k] = fresh
	return nil
}

// record chooses among the rows of logits of the pass.
func (b *best) record(n *Network, rows int) {
	if b.k > 0 && rows > 0 {
		into := b.buffers[b.k]
		n.pass.TopK(into[0], into[1], n.work.logits, rows)
	}
}

func (b *best) bytes() (total int64) {
	for _, pair := range b.buffers {
		total += 2 * 4 * int64(pair[0].Rows()) * int64(pair[0].Cols())
	}
	return total
}

// Best gives the largest logits of one of the rows that a segment got in the latest Forward, at least as many as its
// Top asked for, largest first and of equal ones the smallest id first, and their ids as numbers; all -1 of a row with
// a NaN. Empty where nothing was chosen. Owned by the network, valid until the next Forward or MTP.
func (n *Network) Best(segment, row int) (logits, ids []float32) {
	b := &n.work.best
	if b.k == 0 || row < 0 || segment+1 >= len(b.first) || b.first[segment]+row >= b.first[segment+1] {
		return nil, nil
	}
	at := (b.first[segment] + row) * b.k
	from := b.buffers[b.k]
	return from[0].Floats()[at:][:b.k], from[1].Floats()[at:][:b.k]
}
