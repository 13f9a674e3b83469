package model

import "slipway/engine/device"

// work is the activation buffers of a pass, [rows, width] each, shared by all layers.
type work struct {
	x, y     device.Buffer // residual stream, normed input
	rotation device.Buffer

	qkv, conv, z, a, b, o device.Buffer // gated delta net

	qGate, q, k, v, attended device.Buffer // attention

	gate, up device.Buffer

	pair     device.Buffer // MTP: [embedding ; hidden]
	selected device.Buffer // final rows whose logits are wanted
	last     device.Buffer // final row of each segment; with an MTP head only
	logits   device.Buffer // grows with the rows that are wanted
	best     best
	taps     map[int]device.Buffer

	all     []int32 // 0, 1, 2, ...: the indices of a whole copy
	tokens  []int32
	indices []int32 // rows whose logits are wanted
	ends    []int32 // last rows of the segments
	out     [][][]float32
	rows    [][]float32
}

// allocate makes the buffers and sets the destination of every product.
func (w *work) allocate(n *Network) error {
	c, rows := n.config, n.maxRows()
	var err error
	make1 := func(cols int) device.Buffer {
		if err != nil {
			return nil
		}
		var b device.Buffer
		b, err = n.dev.Buffer(rows, cols)
		return b
	}
	w.x, w.y, w.selected = make1(c.Hidden), make1(c.Hidden), make1(c.Hidden)
	w.rotation = make1(c.RotaryDims)
	value := c.ValueHeads * c.ValueDim
	w.qkv, w.conv, w.z, w.o = make1(c.ConvChannels()), make1(c.ConvChannels()), make1(value), make1(value)
	w.a, w.b = make1(c.ValueHeads), make1(c.ValueHeads)
	w.qGate, w.q, w.attended = make1(2*c.Heads*c.HeadDim), make1(c.Heads*c.HeadDim), make1(c.Heads*c.HeadDim)
	w.k, w.v = make1(c.KVHeads*c.HeadDim), make1(c.KVHeads*c.HeadDim)
	w.gate, w.up = make1(c.Intermediate), make1(c.Intermediate)
	if n.mtp != nil {
		w.pair = make1(2 * c.Hidden)
		w.last = make1(c.Hidden)
	}
	w.taps = map[int]device.Buffer{}
	for _, l := range n.opt.TapLayers {
		w.taps[l] = make1(c.Hidden)
	}
	if err != nil {
		return err
	}
	w.all = make([]int32, rows)
	for i := range w.all {
		w.all[i] = int32(i)
	}
	for i := range n.layers {
		w.direct(&n.layers[i])
	}
	if n.mtp != nil {
		w.direct(&n.mtp.layer)
		n.mtp.fc[0].Dst = w.x
	}
	return w.growLogits(n, n.opt.MaxSequences)
}

// direct sets a layer's destinations.
func (w *work) direct(y *layer) {
	set := func(products []device.Product, dst ...device.Buffer) {
		for i := range products {
			products[i].Dst = dst[i]
		}
	}
	residual := func(products []device.Product) {
		products[0].Dst, products[0].Add = w.x, true
	}
	set(y.gateUp, w.gate, w.up)
	residual(y.down)
	if a := y.attention; a != nil {
		set(a.in, w.qGate, w.k, w.v)
		residual(a.out)
	}
	if r := y.recurrent; r != nil {
		set(r.in, w.qkv, w.z, w.b, w.a)
		residual(r.out)
	}
}

// growLogits makes room for rows rows of logits.
func (w *work) growLogits(n *Network, rows int) error {
	if w.logits != nil && w.logits.Rows() >= rows {
		return nil
	}
	b, err := n.dev.Buffer(rows, n.config.VocabSize)
	if err != nil {
		return err
	}
	if w.logits != nil {
		w.logits.Release()
	}
	w.logits = b
	n.headProducts = []device.Product{{W: n.head, Dst: b}}
	return nil
}

func (w *work) bytes() int64 {
	total := w.best.bytes()
	for _, b := range []device.Buffer{w.x, w.y, w.rotation, w.qkv, w.conv, w.z, w.a, w.b, w.o, w.qGate, w.q, w.k, w.v,
		w.attended, w.gate, w.up, w.pair, w.selected, w.last, w.logits} {
		if b != nil {
			total += int64(b.Rows()) * int64(b.Cols()) * 4
		}
	}
	for _, b := range w.taps {
		total += int64(b.Rows()) * int64(b.Cols()) * 4
	}
	return total
}
