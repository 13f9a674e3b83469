package cpu

import (
	"math"

	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// The gated delta net: convolution and delta rule over the states of the segments.

// conv computes rows [lo, hi).
func (p *pass) conv(o *device.Conv, lo, hi int) {
	dst, x, weight := own(o.Dst), own(o.X), own(o.Weight)
	for row := lo; row < hi; {
		seg := &p.Segments[p.segmentAt(row)]
		tail := seg.State.(*state).tail(o.Layer)
		n := x.cols
		// at gives the row before the convolution at offset i of the segment, i >= -3.
		at := func(i int) []float32 {
			if i < 0 {
				return tail[(device.ConvTaps-1+i)*n:][:n]
			}
			return x.row(seg.Row + i)
		}
		end := min(hi, seg.Row+seg.N)
		for ; row < end; row++ {
			i := row - seg.Row
			kernels.ConvSilu(dst.row(row), weight.f, at(i-3), at(i-2), at(i-1), at(i))
		}
	}
}

// convTail keeps the last rows of the segment, and of the old tail where the segment is shorter.
func (p *pass) convTail(o *device.Conv, segment int) {
	seg := &p.Segments[segment]
	x := own(o.X)
	n := x.cols
	tail := seg.State.(*state).tail(o.Layer)
	kept := max(0, device.ConvTaps-1-seg.N)
	copy(tail, tail[(device.ConvTaps-1-kept)*n:])
	for i := kept; i < device.ConvTaps-1; i++ {
		copy(tail[i*n:(i+1)*n], x.row(seg.Row+seg.N-(device.ConvTaps-1)+i))
	}
	for i := range seg.N {
		e, recording := seg.State.(*state).recorded(o.Layer, i)
		if !recording {
			break
		}
		copy(e.u, x.row(seg.Row+i))
	}
}

// deltaPrepare overwrites QKV, A and B of rows [lo, hi) with the normed q and k, α and β.
func (p *pass) deltaPrepare(o *device.DeltaRule, lo, hi int) {
	g := p.Segments[0].State.Geometry()
	dk, hk := g.KeyDim, g.KeyHeads
	scale := float32(1 / math.Sqrt(float64(dk)))
	qkv, alpha, beta, aLog, dtBias := own(o.QKV), own(o.A), own(o.B), own(o.ALog), own(o.DTBias)
	for i := lo; i < hi; i++ {
		row := qkv.row(i)
		for h := range hk {
			q, k := row[h*dk:][:dk], row[(hk+h)*dk:][:dk]
			kernels.L2Norm(q, q, 1e-6, scale)
			kernels.L2Norm(k, k, 1e-6, 1)
		}
		a, b := alpha.row(i), beta.row(i)
		kernels.Sigmoid(b, b)
		for h := range a {
			a[h] = decay(a[h], aLog.f[h], dtBias.f[h])
		}
	}
}

// decay is α = exp(-exp(aLog)·softplus(a + dtBias)), in float64 because it is one number a head and its error
// compounds.
func decay(a, aLog, dtBias float32) float32 {
	x := float64(a) + float64(dtBias)
	soft := x
	if x <= 20 {
		soft = math.Log1p(math.Exp(x))
	}
	return float32(math.Exp(-math.Exp(float64(aLog)) * soft))
}

// delta runs the recurrence of one segment and value head.
func (p *pass) delta(o *device.DeltaRule, task int) {
	seg := &p.Segments[task%len(p.Segments)]
	s := seg.State.(*state)
	g := &s.g
	h := task / len(p.Segments)
	key := h / (g.ValueHeads / g.KeyHeads)
	matrix := s.head(o.Layer, h)
	dst, qkv, alphas, betas := own(o.Dst), own(o.QKV), own(o.A), own(o.B)
	qAt, kAt, vAt := key*g.KeyDim, (g.KeyHeads+key)*g.KeyDim, 2*g.KeyHeads*g.KeyDim+h*g.ValueDim
	for i := seg.Row; i < seg.Row+seg.N; i++ {
		row, alpha, beta := qkv.row(i), alphas.row(i)[h], betas.row(i)[h]
		if e, recording := s.recorded(o.Layer, i-seg.Row); recording {
			e.alpha[h], e.beta[h] = alpha, beta
			copy(e.v[h*g.ValueDim:(h+1)*g.ValueDim], row[vAt:])
			if h%(g.ValueHeads/g.KeyHeads) == 0 {
				copy(e.k[key*g.KeyDim:(key+1)*g.KeyDim], row[kAt:])
			}
		}
		q, k, v := row[qAt:qAt+g.KeyDim], row[kAt:kAt+g.KeyDim], row[vAt:vAt+g.ValueDim]
		kernels.DeltaStep(matrix, alpha, beta, q, k, v, dst.row(i)[h*g.ValueDim:][:g.ValueDim])
	}
}
