package cpu

import (
	"math"

	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// rotation computes the cosines and sines of rows [lo, hi) in float64.
func (p *pass) rotation(o *device.Rotation, lo, hi int) {
	n := len(o.Inverse)
	for row := lo; row < hi; row++ {
		seg := &p.Segments[p.segmentAt(row)]
		position := float64(seg.Start + row - seg.Row)
		dst := own(o.Dst).row(row)
		for i, f := range o.Inverse {
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

// attentionInput norms, rotates and stores rows [lo, hi). K is overwritten.
func (p *pass) attentionInput(o *device.AttentionInput, lo, hi int) {
	pool := o.KV.(*kv)
	d := pool.g.HeadDim
	queries, queryGates, keys, values := own(o.Q), own(o.QGate), own(o.K), own(o.V)
	queryNorm, keyNorm, angles := own(o.QNorm), own(o.KNorm), own(o.Rotation)
	for row := lo; row < hi; row++ {
		seg := &p.Segments[p.segmentAt(row)]
		position := seg.Start + row - seg.Row
		page, offset := seg.Pages[position/device.PageTokens], position%device.PageTokens
		table := angles.row(row)
		q, qGate := queries.row(row), queryGates.row(row)
		for h := range len(q) / d {
			head := q[h*d : (h+1)*d]
			kernels.RMSNorm(head, qGate[2*h*d:(2*h+1)*d], queryNorm.f, o.Eps)
			rotate(head, table)
		}
		k, v := keys.row(row), values.row(row)
		for h := range pool.g.Heads {
			head := k[h*d : (h+1)*d]
			kernels.RMSNorm(head, head, keyNorm.f, o.Eps)
			rotate(head, table)
			block := pool.block(o.Layer, page, h)
			value := block.Values[offset*d : (offset+1)*d]
			copy(value, v[h*d:(h+1)*d])
			if pool.g.Format == device.KVQ8 {
				roundTrip(head)
				roundTrip(value)
			}
			kernels.StoreKey(block.Keys, offset, head)
		}
	}
}

// queryRows is how many rows of one head share a walk over the pages: keys of a page (64 KiB at head_dim 64) are then
// read from the cache for all but the first.
const queryRows = 32

// attentionStep has a task for each query head and tile of at most queryRows rows. No tile crosses two segments. The
// last tiles see most and are taken first.
func (p *pass) attentionStep(index int) step {
	o := &p.Attentions[index]
	tiles := 0
	for i := range p.Segments {
		tiles += (p.Segments[i].N + queryRows - 1) / queryRows
	}
	heads := o.Dst.Cols() / o.KV.Geometry().HeadDim
	return step{kind: stepAttention, index: index, grid: tiles, tasks: int32(tiles * heads)}
}

func (p *pass) attention(o *device.Attention, tiles, task int, s *scratch) {
	heads := o.Dst.Cols() / o.KV.Geometry().HeadDim
	tile, head := tiles-1-task/heads, task%heads
	i := 0
	for n := 0; ; i++ {
		n = (p.Segments[i].N + queryRows - 1) / queryRows
		if tile < n {
			break
		}
		tile -= n
	}
	seg := &p.Segments[i]
	first := tile * queryRows
	p.attendTile(o, seg, head, first, min(first+queryRows, seg.N), s)
}

// attendTile computes rows [lo, hi) of a segment for one query head. Blocks are pages, at absolute positions and in
// order.
func (p *pass) attendTile(o *device.Attention, seg *device.Segment, head, lo, hi int, s *scratch) {
	pool, dst, queries, queryGates := o.KV.(*kv), own(o.Dst), own(o.Q), own(o.QGate)
	d, stride := pool.g.HeadDim, queries.cols
	rows := hi - lo
	at := (seg.Row+lo)*stride + head*d
	q := queries.f[at:]
	acc := s.floats(rows * d)
	softmax, counts := s.rows(rows)
	scale := float32(1 / math.Sqrt(float64(d)))
	kvHead := head / (dst.cols / d / pool.g.Heads)
	kernels.ResetAttention(acc, d, d, softmax)
	last := seg.Start + hi - 1 // position of the last row, which sees most
	for begin := 0; begin <= last; begin += device.PageTokens {
		block := pool.block(o.Layer, seg.Pages[begin/device.PageTokens], kvHead)
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
	kernels.FinishAttention(dst.f[at:], stride, acc, d, d, softmax)
	for r := range rows {
		out := dst.row(seg.Row + lo + r)[head*d : (head+1)*d]
		gate := queryGates.row(seg.Row + lo + r)[(2*head+1)*d : (2*head+2)*d]
		kernels.SigmoidMul(out, out, gate)
	}
}

// masked reports whether the policy limits row i of the segment, and so possibly later ones.
func masked(seg *device.Segment, i int) bool {
	return seg.Policy.Window > 0 && seg.Start+i < seg.Policy.DenseFrom
}

// attendMasked calls attend for what each row sees of the page that begins at position begin: at most two runs, the
// sink's and the window's, joined where they meet. A row's runs depend on its position alone.
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
