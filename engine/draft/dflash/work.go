package dflash

import "slipway/engine/device"

// contextRows is how many context rows a pass takes beside the blocks, and of a prompt at a time.
const contextRows = 64

// work is the buffers of a pass, [rows, width] each, and its layout.
type work struct {
	x, y                  device.Buffer // residual stream; normed input, then a sub-layer's output
	p                     device.Buffer // after side 0 of a convolution; after the blocks, pending context rows
	kernels               device.Buffer // of the dynamic convolution
	rotation              device.Buffer
	query, qGate, q, k, v device.Buffer // query as projected; with an open gate beside each head
	attended              device.Buffer
	gate, up              device.Buffer
	taps, context         device.Buffer
	selected, hidden      device.Buffer // final rows of the masks; their projection for the selector
	logits, values, ids   device.Buffer

	final  []device.Product // lm_head and the selector's projection
	tables [][]int32        // page tables, by block
	tokens []int32
	masked []int32 // rows of masks
	filled int     // rows of p in use
}

// openGate is a gate whose sigmoid is 1 in f32.
const openGate = 40

func (w *work) allocate(n *Network) error {
	c := n.config
	blocks := n.opt.Sequences * c.Block
	rows := blocks + contextRows
	var err error
	room := func(rows, cols int) device.Buffer {
		if err != nil {
			return nil
		}
		var b device.Buffer
		b, err = n.dev.Buffer(rows, cols)
		return b
	}
	heads := c.Heads * c.HeadDim
	w.x, w.y, w.kernels = room(blocks, c.Hidden), room(blocks, c.Hidden), room(blocks, 2*convTaps*c.groups())
	w.p, w.rotation = room(rows, c.Hidden), room(rows, c.HeadDim)
	w.query, w.qGate, w.q, w.attended = room(blocks, heads), room(rows, 2*heads), room(rows, heads), room(blocks, heads)
	w.k, w.v = room(rows, c.KVHeads*c.HeadDim), room(rows, c.KVHeads*c.HeadDim)
	w.gate, w.up = room(blocks, c.Intermediate), room(blocks, c.Intermediate)
	w.taps, w.context = room(contextRows, len(c.Taps)*c.Hidden), room(contextRows, c.Hidden)
	w.selected, w.hidden, w.logits = room(blocks, c.Hidden), room(blocks, c.Rank), room(blocks, c.Vocab)
	w.values, w.ids = room(blocks, c.TopK), room(blocks, c.TopK)
	if err != nil {
		return err
	}
	gates := w.qGate.Floats()
	for i := range gates {
		gates[i] = openGate
	}
	w.tables = make([][]int32, max(1, n.opt.Sequences))
	w.final = []device.Product{{W: n.opt.Head, Dst: w.logits}, {W: n.hiddenProjection, Dst: w.hidden}}
	n.fc[0].Dst = w.context
	for i := range n.layers {
		y := &n.layers[i]
		y.attentionConv.projection[0].Dst, y.mlpConv.projection[0].Dst = w.kernels, w.kernels
		y.query[0].Dst, y.output[0].Dst, y.down[0].Dst = w.query, w.y, w.y
		y.keysValues[0].Dst, y.keysValues[1].Dst = w.k, w.v
		y.gateUp[0].Dst, y.gateUp[1].Dst = w.gate, w.up
	}
	return nil
}

// spread lays the queries of rows out with the gate that attention wants beside each head, which stays open.
func (w *work) spread(rows, dim int) {
	from, to := w.query.Floats(), w.qGate.Floats()
	for at := 0; at < rows*w.query.Cols(); at += dim {
		copy(to[2*at:2*at+dim], from[at:at+dim])
	}
}

func (w *work) bytes() (total int64) {
	for _, b := range []device.Buffer{w.x, w.y, w.p, w.kernels, w.rotation, w.query, w.qGate, w.q, w.k, w.v, w.attended,
		w.gate, w.up,
		w.taps, w.context, w.selected, w.hidden, w.logits, w.values, w.ids} {
		total += 4 * int64(b.Rows()) * int64(b.Cols())
	}
	return total
}
