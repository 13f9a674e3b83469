package cpu

import (
	"math"

	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// Rotation: dst = a row of cosines and sines a position, computed in float64.
func (p *pass) Rotation(dst device.Buffer, inverse []float64) {
	o := op{kind: opRotation, rows: p.rows, dst: own(dst, p.rows), inverse: inverse}
	wantCols("rotation", o.dst.cols, 2*len(inverse))
	p.add(o, len(inverse)*64)
}

func (p *pass) rotation(o *op, lo, hi int) {
	n := len(o.inverse)
	for row := lo; row < hi; row++ {
		seg := &p.segments[p.segmentAt(row)]
		position := float64(seg.Start + row - seg.Row)
		dst := o.dst.row(row)
		for i, f := range o.inverse {
			sin, cos := math.Sincos(position * f)
			dst[i], dst[n+i] = float32(cos), float32(sin)
		}
	}
}

// rotate turns the pairs (i, i+n) of x by the angles of table (cos[n] | sin[n]).
func rotate(x, table []float32) {
	n := len(table) / 2
	cos, sin := table[:n], table[n:]
	a, b := x[:n], x[n:2*n]
	for i := range a {
		u, v := a[i], b[i]
		a[i] = float32(u*cos[i]) - float32(v*sin[i]) // the conversions forbid fusing
		b[i] = float32(v*cos[i]) + float32(u*sin[i])
	}
}

// AttentionInput fields: dst = Q, a = QGate, b = K, c = V, d = QNorm, e = KNorm, f = rotation. K is overwritten.
func (p *pass) AttentionInput(in device.AttentionInput) {
	o := op{kind: opAttentionInput, rows: p.rows, layer: in.Layer, eps: in.Eps, kv: in.KV.(*kv), dst: own(in.Q, p.rows), a: own(in.QGate, p.rows),
		b: own(in.K, p.rows), c: own(in.V, p.rows), d: own(in.QNorm, 1), e: own(in.KNorm, 1), f: own(in.Rotation, p.rows)}
	o.headDim = o.kv.g.HeadDim
	wantCols("query and gate", o.a.cols, 2*o.dst.cols)
	wantCols("keys", o.b.cols, o.kv.g.Heads*o.headDim)
	wantCols("values", o.c.cols, o.b.cols)
	wantCols("query norm", o.d.cols, o.headDim)
	wantCols("key norm", o.e.cols, o.headDim)
	p.add(o, 4*o.dst.cols)
}

func (p *pass) attentionInput(o *op, lo, hi int) {
	d := o.headDim
	for row := lo; row < hi; row++ {
		seg := &p.segments[p.segmentAt(row)]
		position := seg.Start + row - seg.Row
		page, offset := seg.Pages[position/device.PageTokens], position%device.PageTokens
		table := o.f.row(row)
		q, qGate := o.dst.row(row), o.a.row(row)
		for h := range len(q) / d {
			head := q[h*d : (h+1)*d]
			kernels.RMSNorm(head, qGate[2*h*d:(2*h+1)*d], o.d.f, o.eps)
			rotate(head, table)
		}
		k, v := o.b.row(row), o.c.row(row)
		for h := range o.kv.g.Heads {
			head := k[h*d : (h+1)*d]
			kernels.RMSNorm(head, head, o.e.f, o.eps)
			rotate(head, table)
			block := o.kv.block(o.layer, page, h)
			value := block.Values[offset*d : (offset+1)*d]
			copy(value, v[h*d:(h+1)*d])
			if o.kv.g.Format == device.KVQ8 {
				roundTrip(head)
				roundTrip(value)
			}
			kernels.StoreKey(block.Keys, offset, head)
		}
	}
}

// queryRows is how many rows of one head share a walk over the pages: keys of a page (64 KiB at head_dim 64) are then read
// from the cache for all but the first.
const queryRows = 32

// Attention fields: dst = Dst, a = Q, b = QGate. Tasks: query heads × tiles of at most queryRows rows, no tile across two
// segments; the last tiles, which see most, are taken first.
func (p *pass) Attention(t device.Attention) {
	o := op{kind: opAttention, rows: p.rows, layer: t.Layer, kv: t.KV.(*kv), dst: own(t.Dst, p.rows), a: own(t.Q, p.rows), b: own(t.QGate, p.rows)}
	o.headDim = o.kv.g.HeadDim
	wantCols("queries", o.a.cols, o.dst.cols)
	wantCols("query and gate", o.b.cols, 2*o.dst.cols)
	tiles := 0
	for i := range p.segments {
		tiles += (p.segments[i].N + queryRows - 1) / queryRows
	}
	o.column = tiles
	o.tasks = int32(tiles * (o.dst.cols / o.headDim))
	p.addTasks(o)
}

func (p *pass) attention(o *op, task int, s *scratch) {
	heads := o.dst.cols / o.headDim
	tile, head := o.column-1-task/heads, task%heads
	i := 0
	for n := 0; ; i++ {
		n = (p.segments[i].N + queryRows - 1) / queryRows
		if tile < n {
			break
		}
		tile -= n
	}
	seg := &p.segments[i]
	first := tile * queryRows
	p.attendTile(o, seg, head, first, min(first+queryRows, seg.N), s)
}

// attendTile computes rows [lo, hi) of a segment for one query head. Blocks are pages, at absolute positions and in order.
func (p *pass) attendTile(o *op, seg *device.Segment, head, lo, hi int, s *scratch) {
	d, stride := o.headDim, o.a.cols
	rows := hi - lo
	at := (seg.Row+lo)*stride + head*d
	q := o.a.f[at:]
	acc := s.floats(rows * d)
	softmax, counts := s.rows(rows)
	scale := float32(1 / math.Sqrt(float64(d)))
	kvHead := head / (o.dst.cols / d / o.kv.g.Heads)
	kernels.ResetAttention(acc, d, d, softmax)
	last := seg.Start + hi - 1 // position of the last row, which sees most
	for begin := 0; begin <= last; begin += device.PageTokens {
		block := o.kv.block(o.layer, seg.Pages[begin/device.PageTokens], kvHead)
		if masked(seg, lo) {
			p.attendMasked(seg, begin, lo, hi, func(r, from, n int) {
				counts[0] = n
				cut := kernels.KVBlock{Keys: block.Keys[from:], Values: block.Values[from*d:], ValueStride: d}
				kernels.AttendBlock(acc[r*d:], d, softmax[r:r+1], q[r*stride:], stride, d, cut, counts[:1], scale)
			})
			continue
		}
		for r := range counts {
			counts[r] = max(0, min(seg.Start+lo+r+1-begin, device.PageTokens))
		}
		kernels.AttendBlock(acc, d, softmax, q, stride, d, block, counts, scale)
	}
	kernels.FinishAttention(o.dst.f[at:], stride, acc, d, d, softmax)
	for r := range rows {
		out := o.dst.row(seg.Row + lo + r)[head*d : (head+1)*d]
		gate := o.b.row(seg.Row + lo + r)[(2*head+1)*d : (2*head+2)*d]
		kernels.SigmoidMul(out, out, gate)
	}
}

// masked tells whether the policy limits row i of the segment, and so possibly later ones.
func masked(seg *device.Segment, i int) bool {
	return seg.Policy.Window > 0 && seg.Start+i < seg.Policy.DenseFrom
}

// attendMasked calls attend for what each row sees of the page that begins at position begin: at most two runs, the sink's
// and the window's, joined where they meet. A row's runs depend on its position alone.
func (p *pass) attendMasked(seg *device.Segment, begin, lo, hi int, attend func(row, from, n int)) {
	end := begin + device.PageTokens
	for i := lo; i < hi; i++ {
		t := seg.Start + i
		top := min(end, t+1)
		if !masked(seg, i) {
			if top > begin {
				attend(i-lo, 0, top-begin)
			}
			continue
		}
		sinkEnd := min(top, seg.Policy.Sink)
		windowStart := max(begin, t-seg.Policy.Window+1)
		if windowStart <= sinkEnd {
			sinkEnd, windowStart = top, top
		}
		if sinkEnd > begin {
			attend(i-lo, 0, sinkEnd-begin)
		}
		if windowStart < top {
			attend(i-lo, windowStart-begin, top-windowStart)
		}
	}
}
