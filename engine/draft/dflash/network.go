package dflash

import (
	"context"
	"fmt"

	"slipway/engine/device"
	"slipway/engine/weights"
)

// Network is a loaded draft. It runs one pass at a time.
type Network struct {
	config Config
	opt    Options
	dev    device.Device
	pass   device.Pass

	fc                     []device.Product
	hiddenNorm, norm       device.Buffer
	layers                 []layer
	hiddenProjection       device.Matrix
	predecessor, successor weights.Matrix // [Vocab, Rank], read on the host
	inverse                []float64

	kv          device.KV // a ring of pages for each sequence
	ring        int       // pages of a ring
	idle        []int     // rings that no sequence has
	weightBytes int64

	mixed  []float32 // two rows of the selector's
	work   work
	blocks []block          // of the latest Block
	rows   []device.Segment // its rows and context, by sequence
	single []device.Segment // each of its rows alone
}

// Load puts a draft on dev. Its checkpoint must stay open. Errors are *weights.MisfitError, *MisfitError and the
// device's.
func Load(dev device.Device, from *Checkpoint, opt Options) (*Network, error) {
	c := from.Config
	if opt.Embedding.In() != c.Hidden || opt.Head.In() != c.Hidden || opt.Head.Out() != c.Vocab {
		return nil, misfit("it is made for another model: the target's head has %d tokens of %d channels",
			opt.Head.Out(), opt.Head.In())
	}
	n := &Network{config: c, opt: opt, dev: dev, pass: dev.NewPass(), inverse: c.frequencies(), ring: c.ringPages(),
		mixed: make([]float32, 2*c.Rank)}
	if err := n.load(from.files); err != nil {
		return nil, err
	}
	var err error
	if n.kv, err = dev.KV(device.KVGeometry{Layers: c.Layers, Heads: c.KVHeads, HeadDim: c.HeadDim,
		Pages: n.ring * opt.Sequences}); err != nil {
		return nil, err
	}
	for i := range opt.Sequences {
		n.idle = append(n.idle, i)
	}
	return n, n.work.allocate(n)
}

// ringPages is how many pages hold a window and a block, wherever they begin in a page.
func (c Config) ringPages() int {
	return (c.Window+c.Block-2)/device.PageTokens + 2
}

// Memory is what a draft holds, in bytes: Rings and Rows of all sequences, however many are open.
type Memory struct{ Weights, Rings, Rows, Work int64 }

// MemoryBytes adds up what the draft holds.
func (n *Network) MemoryBytes() Memory {
	rows := n.opt.Sequences * (n.config.Window + slackRows) * n.config.RowBytes()
	return Memory{n.weightBytes, n.kv.Bytes(), int64(rows), n.work.bytes()}
}

// block is what one sequence drafts from, and its share of a pass.
type block struct {
	ask    int // that it answers
	ring   int
	known  int       // first position with keys and values, or a pending row
	start  int       // the anchor's position: known to start are context
	anchor int32     // token at start
	rows   int       // of the block, the anchor's included, in [2, Block]
	ready  int       // context rows from here to start are pending
	fresh  []float32 // those, [start-ready, Hidden]

	row      int // of the block in the pass
	context  int // row of its pending rows
	selected int // row of its first masked row among those
}

// pages is the page table of a sequence's ring, up to position end: a page is used again once a window and a block lie
// after it.
func (n *Network) pages(room []int32, ring, end int) []int32 {
	for at := 0; at*device.PageTokens < end; at++ {
		room = append(room, int32(ring*n.ring+at%n.ring))
	}
	return room
}

// Context computes context rows of taps, [n, taps·Hidden], into dst, [n, Hidden].
func (n *Network) Context(ctx context.Context, dst, taps []float32) error {
	w, h := &n.work, n.config.Hidden
	width := len(n.config.Taps) * h
	for len(taps) > 0 {
		rows := min(len(taps)/width, w.taps.Rows())
		copy(w.taps.Floats(), taps[:rows*width])
		n.single = append(n.single[:0], device.Segment{N: rows})
		n.pass.Begin(n.single)
		n.pass.Linear(w.taps, n.fc, rows)
		n.pass.RMSNorm(w.context, w.context, n.hiddenNorm, n.config.Eps, rows, 0)
		if err := n.pass.Run(ctx); err != nil {
			return fmt.Errorf("context of a draft, %d rows: %w", rows, err)
		}
		copy(dst, w.context.Floats()[:rows*h])
		taps, dst = taps[rows*width:], dst[rows*h:]
	}
	return nil
}

// remember stores keys and values of context rows [rows, Hidden] of positions from start on.
func (n *Network) remember(ctx context.Context, ring, start int, rows []float32) error {
	w, h := &n.work, n.config.Hidden
	for len(rows) > 0 {
		count := min(len(rows)/h, w.p.Rows())
		n.rows = append(n.rows[:0], device.Segment{N: count, Start: start, Pages: n.pages(w.tables[0][:0], ring,
			start+count)})
		w.tables[0] = n.rows[0].Pages
		copy(w.p.Floats(), rows[:count*h])
		p := n.pass
		p.Begin(n.rows)
		p.Rotation(w.rotation, n.inverse)
		for i := range n.layers {
			y := &n.layers[i]
			p.Linear(w.p, y.keysValues, count)
			n.attentionInput(i)
		}
		if err := p.Run(ctx); err != nil {
			return fmt.Errorf("keys of a draft, %d rows: %w", count, err)
		}
		start, rows = start+count, rows[count*h:]
	}
	return nil
}

func (n *Network) attentionInput(i int) {
	w, y := &n.work, &n.layers[i]
	n.pass.AttentionInput(device.AttentionInput{Q: w.q, QGate: w.qGate, K: w.k, V: w.v, QNorm: y.queryNorm,
		KNorm:    y.keyNorm,
		Rotation: w.rotation, KV: n.kv, Layer: i, Eps: n.config.Eps})
}

// block runs blocks, at most one of a sequence, and leaves final rows, candidates and selector rows in n.work.
func (n *Network) block(ctx context.Context, blocks []block) error {
	w, c, p := &n.work, n.config, n.pass
	n.lay(blocks)
	rows := len(w.tokens)
	p.Begin(n.rows)
	p.Embed(w.x, n.opt.Embedding, w.tokens)
	p.Rotation(w.rotation, n.inverse)
	if c.EmbeddingScale != 1 {
		if err := p.Run(ctx); err != nil {
			return err
		}
		x := w.x.Floats()[:rows*c.Hidden]
		for i := range x {
			x[i] *= c.EmbeddingScale
		}
		p.Begin(n.rows)
	}
	for i := range n.layers {
		y := &n.layers[i]
		if err := n.convolved(ctx, &y.attentionConv, y.inputNorm, rows); err != nil {
			return err
		}
		p.Linear(w.p, y.query, rows)
		p.Linear(w.p, y.keysValues, w.filled)
		if err := p.Run(ctx); err != nil {
			return err
		}
		w.spread(rows, c.HeadDim)
		p.Begin(n.rows)
		n.attentionInput(i)
		if err := p.Run(ctx); err != nil {
			return err
		}
		p.Begin(n.single)
		p.Attention(device.Attention{Dst: w.attended, Q: w.q, QGate: w.qGate, KV: n.kv, Layer: i})
		p.Linear(w.attended, y.output, rows)
		if err := n.added(ctx, &y.attentionConv); err != nil {
			return err
		}
		if err := n.convolved(ctx, &y.mlpConv, y.postNorm, rows); err != nil {
			return err
		}
		p.Linear(w.p, y.gateUp, rows)
		p.SwiGLU(w.gate, w.gate, w.up, rows)
		p.Linear(w.gate, y.down, rows)
		if err := n.added(ctx, &y.mlpConv); err != nil {
			return err
		}
	}
	masked := len(w.masked)
	p.Gather(w.selected, w.x, w.masked)
	p.RMSNorm(w.selected, w.selected, n.norm, c.Eps, masked, 0)
	p.Linear(w.selected, w.final, masked)
	p.TopK(w.values, w.ids, w.logits, masked)
	return p.Run(ctx)
}

// lay lays out the rows of a pass: all blocks, then the pending context of each. Each row of a block is also a segment
// by itself, at the block's last position, so that it sees the whole block; its window makes up for the distance.
func (n *Network) lay(blocks []block) {
	w, c := &n.work, n.config
	w.tokens, w.masked, n.rows, n.single = w.tokens[:0], w.masked[:0], n.rows[:0], n.single[:0]
	for i := range blocks {
		b := &blocks[i]
		end := b.start + b.rows
		w.tables[i] = n.pages(w.tables[i][:0], b.ring, end)
		b.row, b.selected = len(w.tokens), len(w.masked)
		n.rows = append(n.rows, device.Segment{Row: b.row, N: b.rows, Start: b.start, Pages: w.tables[i]})
		for r := range b.rows {
			token := c.Mask
			if r == 0 {
				token = b.anchor
			} else {
				w.masked = append(w.masked, int32(b.row+r))
			}
			w.tokens = append(w.tokens, token)
			n.single = append(n.single, device.Segment{Row: b.row + r, N: 1, Start: end - 1, Pages: w.tables[i],
				Policy: device.AttentionPolicy{Window: min(c.Window+b.rows-1-r, end-b.known), DenseFrom: end}})
		}
	}
	w.filled = len(w.tokens)
	for i := range blocks {
		b := &blocks[i]
		b.context = w.filled
		if count := b.start - b.ready; count > 0 {
			copy(w.p.Floats()[w.filled*c.Hidden:], b.fresh)
			n.rows = append(n.rows, device.Segment{Row: w.filled, N: count, Start: b.ready, Pages: w.tables[i]})
			w.filled += count
		}
	}
	n.blocks = blocks
}

// convolved ends a pass with the norm of x and the kernels of it, and begins the next one after side 0 of the
// convolution, which the host computes into w.p.
func (n *Network) convolved(ctx context.Context, v *conv, norm device.Buffer, rows int) error {
	w, c, p := &n.work, n.config, n.pass
	p.RMSNorm(w.y, w.x, norm, c.Eps, rows, 0)
	p.Linear(w.y, v.projection, rows)
	if err := p.Run(ctx); err != nil {
		return err
	}
	y, kernels, dst := w.y.Floats(), w.kernels.Floats(), w.p.Floats()
	for i := range n.blocks {
		for r := range n.blocks[i].rows {
			v.row(dst, y, kernels, c, 0, n.blocks[i].row+r, r > 0, false)
		}
	}
	p.Begin(n.rows)
	return nil
}

// added ends a pass and adds side 1 of the convolution of w.y, a sub-layer's output, to x. It begins the next pass.
func (n *Network) added(ctx context.Context, v *conv) error {
	w, p := &n.work, n.pass
	if err := p.Run(ctx); err != nil {
		return err
	}
	y, kernels, x := w.y.Floats(), w.kernels.Floats(), w.x.Floats()
	for i := range n.blocks {
		for r := range n.blocks[i].rows {
			v.row(x, y, kernels, n.config, 1, n.blocks[i].row+r, r > 0, true)
		}
	}
	p.Begin(n.rows)
	return nil
}

// row computes one row of a convolution, dst[f] = Σ_t (base[side,t,f] + kernels[side,t,f/group])·x_{row-t}[f], or adds
// it to dst. The row before a block's first counts as zero.
func (v *conv) row(dst, x, kernels []float32, c Config, side, row int, before, add bool) {
	h, g := c.Hidden, c.groups()
	dst, now := dst[row*h:(row+1)*h], x[row*h:(row+1)*h]
	base := v.base[side*convTaps*h:]
	own, other := base[:h], base[h:2*h]
	kernel := kernels[(row*2+side)*convTaps*g:]
	last := now // multiplied by zero
	if before {
		last = x[(row-1)*h : row*h]
	}
	for group := range g {
		k0, k1 := kernel[group], kernel[g+group]
		lo, hi := group*c.GroupSize, (group+1)*c.GroupSize
		out, a, b := dst[lo:hi], now[lo:hi], last[lo:hi]
		w0, w1 := own[lo:hi], other[lo:hi]
		for i := range out {
			sum := (w0[i] + k0) * a[i]
			if before {
				sum += (w1[i] + k1) * b[i]
			}
			if add {
				sum += out[i]
			}
			out[i] = sum
		}
	}
}
