package model

import (
	"context"
	"slices"

	"slipway/engine/device"
	"slipway/engine/pass"
)

// Forward advances every segment's sequence by its tokens in one pass. Result i has 0, 1 or len(Tokens) rows of
// VocabSize float32; rows are owned by the network and valid until the next Forward or MTP. When an error is returned
// (the context's, a full window, no pages, a token out of range) no sequence has moved; after an error of the device
// the sequences are lost until they are restored. A context that ends stops a prefill where the device supports it (see
// run); any other pass that has begun runs to its end.
func (n *Network) Forward(ctx context.Context, segments []pass.Segment) ([][][]float32, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(segments) == 0 {
		return nil, ctx.Err()
	}
	if err := n.prepare(ctx, segments); err != nil {
		return nil, err
	}
	n.record(segments)
	n.work.best.record(n, len(n.work.indices))
	if err := n.run(ctx); err != nil {
		return nil, n.failed(ctx, err)
	}
	for i := range segments {
		s := n.sequences[i]
		s.pages.wrote(s.len, s.len+len(segments[i].Tokens))
		s.len += len(segments[i].Tokens)
		n.copyHidden(segments[i].Hidden, i)
		n.copyTaps(segments[i].Taps, i)
		n.keepLast(s, i)
	}
	return n.results(len(segments)), nil
}

// prepare checks the segments, reserves pages and lays out the rows. It does not change what sequences hold.
func (n *Network) prepare(ctx context.Context, segments []pass.Segment) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &n.work
	n.segments, n.sequences, w.tokens, w.indices = n.segments[:0], n.sequences[:0], w.tokens[:0], w.indices[:0]
	for i := range segments {
		g := &segments[i]
		s := g.Seq.(*Sequence)
		if slices.Contains(n.sequences, s) {
			panic("model: a sequence twice in a pass")
		}
		n.sequences = append(n.sequences, s)
		if s.net != n || !s.open || len(g.Tokens) == 0 {
			panic("model: Forward of a closed or foreign sequence, or of no tokens")
		}
		if s.lost {
			return ErrSequenceLost
		}
		if s.len+len(g.Tokens) > n.opt.WindowTokens {
			return &WindowError{Len: s.len, Tokens: len(g.Tokens), Window: n.opt.WindowTokens}
		}
		if err := n.layRows(g.Tokens, g.Logits); err != nil {
			return err
		}
		if err := s.pages.reserve(s.len, s.len+len(g.Tokens)); err != nil {
			return err
		}
		n.segments = append(n.segments, device.Segment{Row: len(w.tokens) - len(g.Tokens), N: len(g.Tokens),
			Start: s.len, State: s.state, Pages: s.pages.ids, Policy: g.Policy})
	}
	w.best.wanted(n, segments)
	if err := w.best.grow(n, len(w.indices)); err != nil {
		return err
	}
	return w.growLogits(n, len(w.indices))
}

// layRows appends a segment's tokens and the rows whose logits it wants.
func (n *Network) layRows(tokens []int32, wanted pass.Logits) error {
	w := &n.work
	row := len(w.tokens)
	if row+len(tokens) > n.maxRows() {
		return &RowsError{Rows: row + len(tokens), Max: n.maxRows()}
	}
	for _, t := range tokens {
		if t < 0 || int(t) >= n.config.VocabSize {
			return &TokenError{Token: t, VocabSize: n.config.VocabSize}
		}
	}
	w.tokens = append(w.tokens, tokens...)
	switch wanted {
	case pass.LogitsLast:
		w.indices = append(w.indices, int32(len(w.tokens)-1))
	case pass.LogitsAll:
		w.indices = append(w.indices, w.all[row:len(w.tokens)]...)
	}
	return nil
}

// record records the pass of the whole network.
func (n *Network) record(segments []pass.Segment) {
	w, p := &n.work, n.pass
	p.Begin(n.segments)
	p.Embed(w.x, n.embed, w.tokens)
	p.Rotation(w.rotation, n.inverse)
	for i := range n.layers {
		n.recordLayer(&n.layers[i], n.kv)
		if tap := w.taps[i]; tap != nil {
			p.Gather(tap, w.x, w.all[:len(w.tokens)])
		}
	}
	hidden := false
	for i := range segments {
		hidden = hidden || segments[i].Hidden != nil
	}
	n.recordHead(n.norm, hidden)
	n.recordLast()
}

// recordLast norms the last row of every segment, which a restore point keeps for the MTP head.
func (n *Network) recordLast() {
	w := &n.work
	if n.mtp == nil {
		return
	}
	w.ends = w.ends[:0]
	for i := range n.segments {
		w.ends = append(w.ends, int32(n.segments[i].Row+n.segments[i].N-1))
	}
	n.pass.Gather(w.last, w.x, w.ends)
	n.pass.RMSNorm(w.last, w.last, n.norm, n.config.Eps, len(w.ends), 0)
}

// keepLast keeps the final row of a segment in its sequence.
func (n *Network) keepLast(s *Sequence, segment int) {
	if n.mtp == nil {
		return
	}
	h := n.config.Hidden
	s.last = append(s.last[:0], n.work.last.Floats()[segment*h:(segment+1)*h]...)
}

// recordLayer is x += mixer(norm x); x += mlp(norm x).
func (n *Network) recordLayer(y *layer, kv device.KV) {
	w, p, c, rows := &n.work, n.pass, n.config, len(n.work.tokens)
	p.RMSNorm(w.y, w.x, y.inputNorm, c.Eps, rows, 0)
	if a := y.attention; a != nil {
		p.Linear(w.y, a.in, rows)
		p.AttentionInput(device.AttentionInput{Q: w.q, QGate: w.qGate, K: w.k, V: w.v, QNorm: a.qNorm, KNorm: a.kNorm,
			Rotation: w.rotation, KV: kv, Layer: a.index, Eps: c.Eps})
		p.Attention(device.Attention{Dst: w.attended, Q: w.q, QGate: w.qGate, KV: kv, Layer: a.index})
		p.Linear(w.attended, a.out, rows)
	} else {
		r := y.recurrent
		p.Linear(w.y, r.in, rows)
		p.Conv(device.Conv{Dst: w.conv, X: w.qkv, Weight: r.conv, Layer: r.index})
		p.DeltaRule(device.DeltaRule{Dst: w.o, QKV: w.conv, A: w.a, B: w.b, ALog: r.aLog, DTBias: r.dtBias,
			Layer: r.index})
		p.GatedNorm(device.GatedNorm{Dst: w.o, O: w.o, Z: w.z, Weight: r.norm, HeadDim: c.ValueDim, Eps: c.Eps})
		p.Linear(w.o, r.out, rows)
	}
	p.RMSNorm(w.y, w.x, y.postNorm, c.Eps, rows, 0)
	p.Linear(w.y, y.gateUp, rows)
	p.SwiGLU(w.gate, w.gate, w.up, rows)
	p.Linear(w.gate, y.down, rows)
}

// recordHead norms the rows whose logits are wanted and multiplies them by lm_head; with hidden it norms all rows into
// y too.
func (n *Network) recordHead(norm device.Buffer, hidden bool) {
	w, p, c := &n.work, n.pass, n.config
	if hidden {
		p.RMSNorm(w.y, w.x, norm, c.Eps, len(w.tokens), 0)
	}
	if len(w.indices) > 0 {
		p.Gather(w.selected, w.x, w.indices)
		p.RMSNorm(w.selected, w.selected, norm, c.Eps, len(w.indices), 0)
		p.Linear(w.selected, n.headProducts, len(w.indices))
	}
}

// copyHidden copies a segment's final rows to dst, if there is one.
func (n *Network) copyHidden(dst []float32, segment int) {
	if dst == nil {
		return
	}
	g := n.segments[segment]
	h := n.config.Hidden
	copy(dst[:g.N*h], n.work.y.Floats()[g.Row*h:])
}

// copyTaps copies the tap layers' outputs of a segment's last rows to dst, side by side, as many as it holds.
func (n *Network) copyTaps(dst []float32, segment int) {
	if dst == nil {
		return
	}
	g := n.segments[segment]
	h, width := n.config.Hidden, len(n.opt.TapLayers)*n.config.Hidden
	rows := min(g.N, len(dst)/width)
	for i, layer := range n.opt.TapLayers {
		tap := n.work.taps[layer].Floats()
		for r := range rows {
			at := g.Row + g.N - rows + r
			copy(dst[r*width+i*h:][:h], tap[at*h:(at+1)*h])
		}
	}
}

// results gives the logits by segment. The next pass reuses the slices.
func (n *Network) results(segments int) [][][]float32 {
	w := &n.work
	v := n.config.VocabSize
	w.rows, w.out, w.best.first = w.rows[:0], w.out[:0], w.best.first[:0]
	for i := range w.indices {
		w.rows = append(w.rows, w.logits.Floats()[i*v:(i+1)*v:(i+1)*v])
	}
	at := 0
	for i := range segments {
		g := n.segments[i]
		first := at
		for at < len(w.indices) && int(w.indices[at]) < g.Row+g.N {
			at++
		}
		w.out, w.best.first = append(w.out, w.rows[first:at:at]), append(w.best.first, first)
	}
	w.best.first = append(w.best.first, at)
	return w.out
}

// Tap is the output of a layer named in Options.TapLayers for every row of the last Forward, [rows, Hidden], raw: what
// a DFlash draft reads. Owned by the network, valid until the next Forward.
func (n *Network) Tap(layer int) []float32 {
	return n.work.taps[layer].Floats()[:len(n.work.tokens)*n.config.Hidden]
}
