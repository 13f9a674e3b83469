package cpu

import (
	"math"

	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// The gated delta net: convolution and delta rule over the segments' states.

// conv fields: dst, a = X, b = weight as planes [taps, channels], layer.
func (p *pass) Conv(c device.Conv) {
	o := op{kind: opConv, rows: p.rows, layer: c.Layer, dst: own(c.Dst, p.rows), a: own(c.X, p.rows), b: own(c.Weight, 1)}
	wantCols("convolution", o.dst.cols, o.a.cols)
	wantCols("taps", o.b.cols, convTaps*o.a.cols)
	p.add(o, o.a.cols*convTaps)
	o.kind, o.rows, o.rowsPerTask, o.tasks = opConvTail, len(p.segments), 1, int32(len(p.segments))
	p.addTasks(o) // after every row has read the old tail
}

// convTaps is the only kernel size of the family.
const convTaps = 4

func (p *pass) conv(o *op, lo, hi int) {
	for row := lo; row < hi; {
		seg := &p.segments[p.segmentAt(row)]
		tail := seg.State.(*state).tail(o.layer)
		n := o.a.cols
		// at gives the row before the convolution at offset i of the segment, i >= -3.
		at := func(i int) []float32 {
			if i < 0 {
				return tail[(convTaps-1+i)*n:][:n]
			}
			return o.a.row(seg.Row + i)
		}
		end := min(hi, seg.Row+seg.N)
		for ; row < end; row++ {
			i := row - seg.Row
			kernels.ConvSilu(o.dst.row(row), o.b.f, at(i-3), at(i-2), at(i-1), at(i))
		}
	}
}

// convTail keeps the last rows of the segment, and of the old tail where the segment is shorter.
func (p *pass) convTail(o *op, segment int) {
	seg := &p.segments[segment]
	n := o.a.cols
	tail := seg.State.(*state).tail(o.layer)
	kept := max(0, convTaps-1-seg.N)
	copy(tail, tail[(convTaps-1-kept)*n:])
	for i := kept; i < convTaps-1; i++ {
		copy(tail[i*n:(i+1)*n], o.a.row(seg.Row+seg.N-(convTaps-1)+i))
	}
	for i := range seg.N {
		e, recording := seg.State.(*state).recorded(o.layer, i)
		if !recording {
			break
		}
		copy(e.u, o.a.row(seg.Row+i))
	}
}

// DeltaRule is recorded as two operations: norms and gates per row, then the recurrence per segment and value head.
// QKV, A and B are overwritten with the normed q and k, α and β.
// Fields: a = QKV, b = A, c = B, d = ALog, e = DTBias, headDim = Dk, column = Hk.
func (p *pass) DeltaRule(r device.DeltaRule) {
	o := op{kind: opDeltaPrepare, rows: p.rows, layer: r.Layer, dst: own(r.Dst, p.rows), a: own(r.QKV, p.rows), b: own(r.A, p.rows), c: own(r.B, p.rows), d: own(r.ALog, 1), e: own(r.DTBias, 1)}
	g := p.segments[0].State.Geometry()
	wantCols("QKV", o.a.cols, g.ConvChannels)
	wantCols("delta rule output", o.dst.cols, g.ValueHeads*g.ValueDim)
	wantCols("A", o.b.cols, g.ValueHeads)
	wantCols("B", o.c.cols, g.ValueHeads)
	o.headDim, o.column = g.KeyDim, g.KeyHeads
	p.add(o, o.a.cols)
	o.kind, o.tasks = opDelta, int32(len(p.segments)*g.ValueHeads)
	p.addTasks(o)
}

func (o *op) deltaPrepare(lo, hi int) {
	dk, hk := o.headDim, o.column
	scale := float32(1 / math.Sqrt(float64(dk)))
	for i := lo; i < hi; i++ {
		row := o.a.row(i)
		for h := range hk {
			q, k := row[h*dk:][:dk], row[(hk+h)*dk:][:dk]
			kernels.L2Norm(q, q, 1e-6, scale)
			kernels.L2Norm(k, k, 1e-6, 1)
		}
		a, b := o.b.row(i), o.c.row(i)
		kernels.Sigmoid(b, b)
		for h := range a {
			a[h] = decay(a[h], o.d.f[h], o.e.f[h])
		}
	}
}

// decay is α = exp(-exp(aLog)·softplus(a + dtBias)), in float64 because it is one number a head and its error compounds.
func decay(a, aLog, dtBias float32) float32 {
	x := float64(a) + float64(dtBias)
	soft := x
	if x <= 20 {
		soft = math.Log1p(math.Exp(x))
	}
	return float32(math.Exp(-math.Exp(float64(aLog)) * soft))
}

func (p *pass) delta(o *op, task int) {
	seg := &p.segments[task%len(p.segments)]
	s := seg.State.(*state)
	g := &s.g
	h := task / len(p.segments)
	key := h / (g.ValueHeads / g.KeyHeads)
	matrix := s.head(o.layer, h)
	qAt, kAt, vAt := key*g.KeyDim, (g.KeyHeads+key)*g.KeyDim, 2*g.KeyHeads*g.KeyDim+h*g.ValueDim
	for i := seg.Row; i < seg.Row+seg.N; i++ {
		row := o.a.row(i)
		if e, recording := s.recorded(o.layer, i-seg.Row); recording {
			e.alpha[h], e.beta[h] = o.b.row(i)[h], o.c.row(i)[h]
			copy(e.v[h*g.ValueDim:(h+1)*g.ValueDim], row[vAt:])
			if h%(g.ValueHeads/g.KeyHeads) == 0 {
				copy(e.k[key*g.KeyDim:(key+1)*g.KeyDim], row[kAt:])
			}
		}
		kernels.DeltaStep(matrix, o.b.row(i)[h], o.c.row(i)[h], row[qAt:qAt+g.KeyDim], row[kAt:kAt+g.KeyDim], row[vAt:vAt+g.ValueDim], o.dst.row(i)[h*g.ValueDim:][:g.ValueDim])
	}
}
