//go:build unix

package metal

import (
	"math"
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/kernels"
)

// encode writes every operation's dispatches.
func (p *pass) encode(e *encoder) error {
	for i := 0; i < len(p.ops); {
		e.phase()
		n, err := p.encodeNext(e, p.ops[i:])
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// encodeNext writes the first operation, with the second where one kernel does both, and returns how many it took.
func (p *pass) encodeNext(e *encoder, ops []op) (int, error) {
	if len(ops) > 1 {
		if v, ok := p.gated(&ops[0], &ops[1]); ok {
			return 2, p.encodeGated(e, &ops[0], v)
		}
		if conv, delta := &ops[0], &ops[1]; conv.kind == opConv && delta.kind == opDelta && conv.dst == delta.a && conv.layer == delta.layer {
			return 2, p.encodeDelta(e, delta, conv)
		}
	}
	return 1, p.encodeOne(e, &ops[0])
}

func (p *pass) encodeOne(e *encoder, o *op) error {
	switch o.kind {
	case opEmbed:
		return p.encodeEmbed(e, o)
	case opNorm:
		return p.encodeNorm(e, o)
	case opLinear:
		return p.encodeLinear(e, o)
	case opSwiGLU:
		return p.encodeSwiGLU(e, o)
	case opGather:
		return p.encodeGather(e, o)
	case opConv:
		return p.encodeDeltaInput(e, o, nil)
	case opDelta:
		return p.encodeDelta(e, o, nil)
	case opGatedNorm:
		return p.encodeGatedNorm(e, o)
	case opRotation:
		return p.encodeRotation(e, o)
	case opAttentionInput:
		return p.encodeAttentionInput(e, o)
	case opAttention:
		return p.encodeAttention(e, o)
	case opTopK:
		return p.encodeTopK(e, o)
	}
	panic("metal: an operation of no kind")
}

func divide(n, by int) int { return (n + by - 1) / by }

// groups is the grid of threadgroups of group over x by y threads, a thread an element.
func groups(x, y int, group [3]int) [3]int {
	return [3]int{divide(x, group[0]), divide(y, group[1]), 1}
}

// either returns the fast variant where it may be used and its pipeline can be made, else plain.
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

// integers is the pass's meta from an integer on.
func (p *pass) integers(at, index int) use { return use{p.meta.b, 4 * at, index, constant} }

// status is the pass's status word, which kernels set bits of in any order.
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

func (p *pass) encodeEmbed(e *encoder, o *op) error {
	m := o.table
	params := kernels.EmbedParams{Rows: u32(o.rows), In: u32(m.in)}
	v := variant{library: "embed", name: "embed_dense", constants: m.weightConstants(), count: 3, threads: 128}
	grid := groups(m.in, o.rows, plane)
	bytes := float64(8 * o.rows * m.in)
	if m.format != device.FormatAffine {
		return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, plane, bytes, 0, o.dst.use(1, write), m.data.use(2), p.integers(o.at, 5))
	}
	v.name = "embed_affine"
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, plane, bytes, 0,
		o.dst.use(1, write), m.data.use(2), m.scales.use(3), m.biases.use(4), p.integers(o.at, 5))
}

func (p *pass) encodeNorm(e *encoder, o *op) error {
	params := kernels.RMSNormParams{Rows: u32(o.rows), Cols: u32(o.a.cols), Stride: u32(o.dst.cols), Column: u32(o.column), Eps: o.eps}
	v := p.dev.either(variant{library: "rms_norm", name: "rms_norm", threads: 256}, variant{library: "rms_norm_plain", name: "rms_norm_plain", threads: 64})
	grid, group := [3]int{o.rows, 1, 1}, [3]int{256, 1, 1}
	if v.threads == 64 {
		grid, group = groups(o.rows, 1, flat), flat
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, float64(8*o.rows*o.a.cols), 0,
		o.dst.use(1, write), o.a.use(2, read), o.b.use(3, constant))
}

func (p *pass) encodeSwiGLU(e *encoder, o *op) error {
	n := o.rows * o.dst.cols
	params := kernels.SwiGLUParams{Count: u32(n)}
	return e.run(variant{library: "swiglu", name: "swiglu", threads: 64}, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), groups(n, 1, flat), flat, float64(12*n), 0,
		o.dst.use(1, write), o.a.use(2, read), o.b.use(3, read))
}

func (p *pass) encodeGather(e *encoder, o *op) error {
	params := kernels.GatherParams{Rows: u32(o.rows), Cols: u32(o.dst.cols)}
	return e.run(variant{library: "gather", name: "gather", threads: 128}, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), groups(o.dst.cols, o.rows, plane), plane,
		float64(8*o.rows*o.dst.cols), 0, o.dst.use(1, write), o.a.use(2, read), p.integers(o.at, 3))
}

func (p *pass) encodeRotation(e *encoder, o *op) error {
	n := len(o.inverse)
	params := kernels.RotationParams{Rows: u32(o.rows), Pairs: u32(n)}
	return e.run(variant{library: "rotation", name: "rotation", threads: 128}, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), groups(n, o.rows, plane), plane,
		float64(8*o.rows*n), 0, o.dst.use(1, write), p.integers(p.meta.positions, 2), p.integers(o.at, 3))
}

func (p *pass) encodeGatedNorm(e *encoder, o *op) error {
	n := o.rows * (o.dst.cols / o.headDim)
	params := kernels.GatedNormParams{Heads: u32(n), Dim: u32(o.headDim), Eps: o.eps}
	v := p.dev.either(variant{library: "gated_norm", name: "gated_norm", threads: 128}, variant{library: "gated_norm_plain", name: "gated_norm_plain", threads: 64})
	grid, group := [3]int{divide(n, 4), 1, 1}, [3]int{128, 1, 1}
	if v.threads == 64 {
		grid, group = groups(n, 1, flat), flat
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, float64(12*n*o.headDim), 0,
		o.dst.use(1, write), o.a.use(2, read), o.b.use(3, read), o.c.use(4, constant))
}

func (p *pass) encodeAttentionInput(e *encoder, o *op) error {
	d := o.headDim
	heads := o.dst.cols / d
	params := kernels.AttentionInputParams{Rows: u32(o.rows), Heads: u32(heads), KVHeads: u32(o.kv.g.Heads), Dim: u32(d), Pairs: u32(o.f.cols / 2), Eps: o.eps}
	constants := [6]uint32{o.kv.q8()}
	v := p.dev.either(variant{library: "attention_input", name: "attention_input", constants: constants, count: 1, threads: 32},
		variant{library: "attention_input_plain", name: "attention_input_plain", constants: constants, count: 1, threads: 128})
	all := heads + 2*o.kv.g.Heads
	grid, group := [3]int{all, o.rows, 1}, [3]int{32, 1, 1}
	if v.threads == 128 {
		grid, group = groups(all, o.rows, plane), plane
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, float64(12*o.rows*all*d), 0,
		o.dst.use(1, write), o.a.use(2, read), o.b.use(3, read), o.c.use(4, read), o.d.use(5, constant), o.e.use(6, constant), o.f.use(7, read),
		p.integers(p.meta.slots, 8), use{o.kv.keys[o.layer], 0, 9, write}, use{o.kv.values[o.layer], 0, 10, write}, p.status(11))
}

func scaleOf(d int) float32 { return float32(1 / math.Sqrt(float64(d))) }
