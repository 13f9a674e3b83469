//go:build unix

package metal

import (
	"math"
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/kernels"
)

// encode writes the dispatches of every operation.
func (p *pass) encode(e *encoder) error {
	for i := 0; i < len(p.Ops); {
		e.phase()
		n, err := p.encodeNext(e, i)
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// encodeNext writes the i-th operation, with the next one where one kernel does both, and returns how many it wrote.
func (p *pass) encodeNext(e *encoder, i int) (int, error) {
	o := p.Ops[i]
	if i+1 == len(p.Ops) {
		return 1, p.encodeOne(e, i)
	}
	switch next := p.Ops[i+1]; {
	case o.Kind == device.KindLinear && next.Kind == device.KindSwiGLU:
		linear := &p.Linears[o.Index]
		if v, ok := p.gated(linear, &p.SwiGLUs[next.Index]); ok {
			return 2, p.encodeGated(e, linear, v)
		}
	case o.Kind == device.KindConv && next.Kind == device.KindDeltaRule:
		conv, delta := &p.Convs[o.Index], &p.DeltaRules[next.Index]
		if conv.Dst == delta.QKV && conv.Layer == delta.Layer {
			return 2, p.encodeDelta(e, delta, conv)
		}
	}
	return 1, p.encodeOne(e, i)
}

func (p *pass) encodeOne(e *encoder, i int) error {
	o, at := p.Ops[i], p.meta.ops[i]
	switch o.Kind {
	case device.KindEmbed:
		return p.encodeEmbed(e, &p.Embeds[o.Index], at)
	case device.KindRMSNorm:
		return p.encodeNorm(e, &p.RMSNorms[o.Index])
	case device.KindLinear:
		return p.encodeLinear(e, &p.Linears[o.Index])
	case device.KindSwiGLU:
		return p.encodeSwiGLU(e, &p.SwiGLUs[o.Index])
	case device.KindGather:
		return p.encodeGather(e, &p.Gathers[o.Index], at)
	case device.KindConv:
		return p.encodeDeltaInput(e, &p.Convs[o.Index], nil)
	case device.KindDeltaRule:
		return p.encodeDelta(e, &p.DeltaRules[o.Index], nil)
	case device.KindGatedNorm:
		return p.encodeGatedNorm(e, &p.GatedNorms[o.Index])
	case device.KindRotation:
		return p.encodeRotation(e, &p.Rotations[o.Index], at)
	case device.KindAttentionInput:
		return p.encodeAttentionInput(e, &p.AttentionInputs[o.Index])
	case device.KindAttention:
		return p.encodeAttention(e, &p.Attentions[o.Index])
	case device.KindTopK:
		return p.encodeTopK(e, &p.TopKs[o.Index])
	}
	panic("metal: an operation of no kind")
}

func divide(n, by int) int { return (n + by - 1) / by }

// groups is the grid of threadgroups of group over x by y threads, a thread an element.
func groups(x, y int, group [3]int) [3]int {
	return [3]int{divide(x, group[0]), divide(y, group[1]), 1}
}

// either returns the fast variant if it may be used and its pipeline can be made, else plain.
func (d *Device) either(fast, plain variant) variant {
	if d.fast(fast.library) {
		if _, err := d.pipeline(fast); err == nil {
			return fast
		}
	}
	return plain
}

func (b *buffer) use(index int, a access) use { return use{b.b, 0, index, a} }

// from is the buffer from row on.
func (b *buffer) from(row, index int, a access) use { return use{b.b, 4 * row * b.cols, index, a} }

func (q piece) use(index int) use { return use{q.b, q.offset, index, constant} }

// integers is the integers of the pass from an index on.
func (p *pass) integers(at, index int) use { return use{p.meta.b, 4 * at, index, constant} }

// status is the status word of the pass. Kernels set its bits in any order.
func (p *pass) status(index int) use { return use{p.meta.b, 0, index, constant} }

// weightConstants are the function constants of kernels that read a matrix.
func (m *matrix) weightConstants() [6]uint32 {
	if m.format == device.FormatAffine {
		return [6]uint32{u32(m.bits), u32(m.group), u32(int(m.scaleFormat)), 1}
	}
	return [6]uint32{8, 32, u32(int(m.format)), 1}
}

var (
	flat  = [3]int{64, 1, 1} // threads for one dimension
	plane = [3]int{32, 4, 1} // and for two
)

// encodeEmbed: the token ids lie at integer at of the pass.
func (p *pass) encodeEmbed(e *encoder, o *device.Embed, at int) error {
	m, dst, rows := o.Table.(*matrix), own(o.Dst), len(o.Tokens)
	params := kernels.EmbedParams{Rows: u32(rows), In: u32(m.in)}
	v := variant{library: "embed", name: "embed_dense", constants: m.weightConstants(), count: 3, threads: 128}
	uses := [5]use{dst.use(1, write), m.data.use(2), p.integers(at, 5), m.scales.use(3), m.biases.use(4)}
	n := 3
	if m.format == device.FormatAffine {
		v.name, n = "embed_affine", len(uses)
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), groups(m.in, rows, plane), plane,
		float64(8*rows*m.in), 0, uses[:n]...)
}

func (p *pass) encodeNorm(e *encoder, o *device.RMSNorm) error {
	dst, x := own(o.Dst), own(o.X)
	params := kernels.RMSNormParams{Rows: u32(o.Rows), Cols: u32(x.cols), Stride: u32(dst.cols), Column: u32(o.Column),
		Eps: o.Eps}
	v := p.dev.either(variant{library: "rms_norm", name: "rms_norm", threads: 256},
		variant{library: "rms_norm_plain", name: "rms_norm_plain", threads: 64})
	grid, group := [3]int{o.Rows, 1, 1}, [3]int{256, 1, 1}
	if v.threads == 64 {
		grid, group = groups(o.Rows, 1, flat), flat
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, float64(8*o.Rows*x.cols), 0,
		dst.use(1, write), x.use(2, read), own(o.Weight).use(3, constant))
}

func (p *pass) encodeSwiGLU(e *encoder, o *device.SwiGLU) error {
	dst := own(o.Dst)
	n := o.Rows * dst.cols
	params := kernels.SwiGLUParams{Count: u32(n)}
	v := variant{library: "swiglu", name: "swiglu", threads: 64}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), groups(n, 1, flat), flat, float64(12*n), 0,
		dst.use(1, write), own(o.Gate).use(2, read), own(o.Up).use(3, read))
}

// encodeGather: the indices lie at integer at of the pass.
func (p *pass) encodeGather(e *encoder, o *device.Gather, at int) error {
	dst, rows := own(o.Dst), len(o.Indices)
	params := kernels.GatherParams{Rows: u32(rows), Cols: u32(dst.cols)}
	v := variant{library: "gather", name: "gather", threads: 128}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), groups(dst.cols, rows, plane), plane,
		float64(8*rows*dst.cols), 0, dst.use(1, write), own(o.Src).use(2, read), p.integers(at, 3))
}

// encodeRotation: the frequencies lie at integer at of the pass.
func (p *pass) encodeRotation(e *encoder, o *device.Rotation, at int) error {
	n := len(o.Inverse)
	params := kernels.RotationParams{Rows: u32(p.Rows), Pairs: u32(n)}
	v := variant{library: "rotation", name: "rotation", threads: 128}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), groups(n, p.Rows, plane), plane,
		float64(8*p.Rows*n), 0, own(o.Dst).use(1, write), p.integers(p.meta.positions, 2), p.integers(at, 3))
}

func (p *pass) encodeGatedNorm(e *encoder, o *device.GatedNorm) error {
	dst := own(o.Dst)
	n := p.Rows * (dst.cols / o.HeadDim)
	params := kernels.GatedNormParams{Heads: u32(n), Dim: u32(o.HeadDim), Eps: o.Eps}
	v := p.dev.either(variant{library: "gated_norm", name: "gated_norm", threads: 128},
		variant{library: "gated_norm_plain", name: "gated_norm_plain", threads: 64})
	grid, group := [3]int{divide(n, 4), 1, 1}, [3]int{128, 1, 1}
	if v.threads == 64 {
		grid, group = groups(n, 1, flat), flat
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, float64(12*n*o.HeadDim), 0,
		dst.use(1, write), own(o.O).use(2, read), own(o.Z).use(3, read), own(o.Weight).use(4, constant))
}

func (p *pass) encodeAttentionInput(e *encoder, o *device.AttentionInput) error {
	pool, q, rotation := o.KV.(*kv), own(o.Q), own(o.Rotation)
	d := pool.g.HeadDim
	heads := q.cols / d
	params := kernels.AttentionInputParams{Rows: u32(p.Rows), Heads: u32(heads), KVHeads: u32(pool.g.Heads),
		Dim:   u32(d),
		Pairs: u32(rotation.cols / 2), Eps: o.Eps}
	constants := [6]uint32{pool.q8()}
	v := p.dev.either(variant{library: "attention_input", name: "attention_input", constants: constants, count: 1,
		threads: 32},
		variant{library: "attention_input_plain", name: "attention_input_plain", constants: constants, count: 1,
			threads: 128})
	all := heads + 2*pool.g.Heads
	grid, group := [3]int{all, p.Rows, 1}, [3]int{32, 1, 1}
	if v.threads == 128 {
		grid, group = groups(all, p.Rows, plane), plane
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, float64(12*p.Rows*all*d), 0,
		q.use(1, write), own(o.QGate).use(2, read), own(o.K).use(3, read), own(o.V).use(4, read),
		own(o.QNorm).use(5, constant), own(o.KNorm).use(6, constant), rotation.use(7, read),
		p.integers(p.meta.slots, 8),
		use{pool.keys[o.Layer], 0, 9, write}, use{pool.values[o.Layer], 0, 10, write}, p.status(11))
}

func scaleOf(d int) float32 { return float32(1 / math.Sqrt(float64(d))) }
