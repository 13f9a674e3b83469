//go:build unix

package metal

import (
	"context"
	"fmt"
	"math"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// pass records operations and encodes them in Run. It implements device.Pass.
type pass struct {
	dev      *Device
	segments []device.Segment
	rows     int
	ops      []op
	encoder  encoder
	meta     meta
	seconds  float64
}

func (d *Device) NewPass() device.Pass { return &pass{dev: d} }

// op is one recorded operation: what it is, and how to encode it.
type op struct {
	kind         opKind
	rows, column int
	layer        int
	eps          float32
	dst, a, b, c *buffer
	d, e, f      *buffer
	table        *matrix
	products     []device.Product
	ids          []int32
	inverse      []float64
	headDim, at  int // at: where its integers lie in the pass's meta
	kv           *kv
}

type opKind int

const (
	opEmbed opKind = iota
	opNorm
	opLinear
	opSwiGLU
	opGather
	opConv
	opDelta
	opGatedNorm
	opRotation
	opAttentionInput
	opAttention
	opTopK
)

func (p *pass) Begin(segments []device.Segment) {
	p.segments, p.ops, p.rows = segments, p.ops[:0], 0
	for i, s := range segments {
		if s.Row != p.rows || s.N <= 0 || s.Start < 0 {
			panic(fmt.Sprintf("metal: segment %d has rows [%d,%d) after %d", i, s.Row, s.Row+s.N, p.rows))
		}
		p.rows += s.N
	}
}

// own turns a handle of the interface into ours and checks that it has at least rows rows.
func own(b device.Buffer, rows int) *buffer {
	o := b.(*buffer)
	if o.rows < rows {
		panic(fmt.Sprintf("metal: %d rows in a buffer of %d", rows, o.rows))
	}
	return o
}

func wantCols(what string, found, wanted int) {
	if found != wanted {
		panic(fmt.Sprintf("metal: %s has %d columns, wanted %d", what, found, wanted))
	}
}

func (p *pass) add(o op) {
	if o.rows > 0 {
		p.ops = append(p.ops, o)
	}
}

func (p *pass) Embed(dst device.Buffer, table device.Matrix, tokens []int32) {
	o := op{kind: opEmbed, rows: len(tokens), dst: own(dst, len(tokens)), table: table.(*matrix), ids: tokens}
	wantCols("embedding", o.dst.cols, o.table.in)
	p.add(o)
}

func (p *pass) RMSNorm(dst, x, weight device.Buffer, eps float32, rows, column int) {
	o := op{kind: opNorm, rows: rows, column: column, eps: eps, dst: own(dst, rows), a: own(x, rows), b: own(weight, 1)}
	wantCols("norm weight", o.b.cols, o.a.cols)
	if column < 0 || column+o.a.cols > o.dst.cols {
		panic("metal: norm past its destination")
	}
	p.add(o)
}

func (p *pass) Linear(x device.Buffer, products []device.Product, rows int) {
	o := op{kind: opLinear, rows: rows, a: own(x, rows), products: products}
	for _, q := range products {
		m := q.W.(*matrix)
		wantCols("input", o.a.cols, m.in)
		wantCols("product", own(q.Dst, rows).cols, m.out)
	}
	p.add(o)
}

func (p *pass) SwiGLU(dst, gate, up device.Buffer, rows int) {
	o := op{kind: opSwiGLU, rows: rows, dst: own(dst, rows), a: own(gate, rows), b: own(up, rows)}
	wantCols("gate", o.a.cols, o.dst.cols)
	wantCols("up", o.b.cols, o.dst.cols)
	p.add(o)
}

func (p *pass) Gather(dst, src device.Buffer, indices []int32) {
	o := op{kind: opGather, rows: len(indices), dst: own(dst, len(indices)), a: own(src, 0), ids: indices}
	wantCols("source", o.a.cols, o.dst.cols)
	p.add(o)
}

// Conv fields: dst, a = X, b = weight, layer.
func (p *pass) Conv(c device.Conv) {
	o := op{kind: opConv, rows: p.rows, layer: c.Layer, dst: own(c.Dst, p.rows), a: own(c.X, p.rows), b: own(c.Weight, 1)}
	wantCols("convolution", o.dst.cols, o.a.cols)
	wantCols("taps", o.b.cols, convTaps*o.a.cols)
	p.add(o)
}

// DeltaRule fields: dst, a = QKV, b = A, c = B, d = ALog, e = DTBias, layer.
func (p *pass) DeltaRule(r device.DeltaRule) {
	o := op{kind: opDelta, rows: p.rows, layer: r.Layer, dst: own(r.Dst, p.rows), a: own(r.QKV, p.rows), b: own(r.A, p.rows), c: own(r.B, p.rows), d: own(r.ALog, 1), e: own(r.DTBias, 1)}
	g := p.segments[0].State.Geometry()
	wantCols("QKV", o.a.cols, g.ConvChannels)
	wantCols("delta rule output", o.dst.cols, g.ValueHeads*g.ValueDim)
	wantCols("A", o.b.cols, g.ValueHeads)
	wantCols("B", o.c.cols, g.ValueHeads)
	p.add(o)
}

// GatedNorm fields: dst, a = O, b = Z, c = weight.
func (p *pass) GatedNorm(g device.GatedNorm) {
	o := op{kind: opGatedNorm, rows: p.rows, headDim: g.HeadDim, eps: g.Eps, dst: own(g.Dst, p.rows), a: own(g.O, p.rows), b: own(g.Z, p.rows), c: own(g.Weight, 1)}
	wantCols("norm weight", o.c.cols, g.HeadDim)
	wantCols("O", o.a.cols, o.dst.cols)
	wantCols("Z", o.b.cols, o.dst.cols)
	p.add(o)
}

func (p *pass) Rotation(dst device.Buffer, inverse []float64) {
	o := op{kind: opRotation, rows: p.rows, dst: own(dst, p.rows), inverse: inverse}
	wantCols("rotation", o.dst.cols, 2*len(inverse))
	p.add(o)
}

// AttentionInput fields: dst = Q, a = QGate, b = K, c = V, d = QNorm, e = KNorm, f = rotation.
func (p *pass) AttentionInput(in device.AttentionInput) {
	o := op{kind: opAttentionInput, rows: p.rows, layer: in.Layer, eps: in.Eps, kv: in.KV.(*kv), dst: own(in.Q, p.rows), a: own(in.QGate, p.rows),
		b: own(in.K, p.rows), c: own(in.V, p.rows), d: own(in.QNorm, 1), e: own(in.KNorm, 1), f: own(in.Rotation, p.rows)}
	o.headDim = o.kv.g.HeadDim
	wantCols("query and gate", o.a.cols, 2*o.dst.cols)
	wantCols("keys", o.b.cols, o.kv.g.Heads*o.headDim)
	wantCols("values", o.c.cols, o.b.cols)
	wantCols("query norm", o.d.cols, o.headDim)
	wantCols("key norm", o.e.cols, o.headDim)
	p.add(o)
}

// Attention fields: dst, a = Q, b = QGate.
func (p *pass) Attention(t device.Attention) {
	o := op{kind: opAttention, rows: p.rows, layer: t.Layer, kv: t.KV.(*kv), dst: own(t.Dst, p.rows), a: own(t.Q, p.rows), b: own(t.QGate, p.rows)}
	o.headDim = o.kv.g.HeadDim
	wantCols("queries", o.a.cols, o.dst.cols)
	wantCols("query and gate", o.b.cols, 2*o.dst.cols)
	p.add(o)
}

// Run encodes, commits and waits. The time that the GPU took is in GPUSeconds.
func (p *pass) Run(ctx context.Context) error { return p.run(ctx, context.Background()) }

// RunStoppable is Run, ended by ctx between two command buffers.
func (p *pass) RunStoppable(ctx context.Context) error { return p.run(ctx, ctx) }

// run looks at before until the pass begins, and at during from then on.
func (p *pass) run(before, during context.Context) error {
	if err := before.Err(); err != nil {
		return err
	}
	p.seconds = 0
	if len(p.ops) == 0 {
		return nil
	}
	for i := range p.ops {
		if k := p.ops[i].kv; k != nil && k.lost != nil {
			return k.lost
		}
	}
	if err := p.layMeta(); err != nil {
		return err
	}
	if err := p.beginStates(); err != nil {
		return err
	}
	return p.dev.runtime.Pool(func() error {
		e := &p.encoder
		e.begin(p.dev)
		e.stop = during
		err := p.encode(e)
		if err2 := e.finish(); err == nil {
			err = err2
		}
		p.seconds = e.seconds
		p.dev.addGPUSeconds(e.seconds)
		for _, b := range p.meta.outgrown {
			p.dev.free(b)
		}
		p.meta.outgrown = p.meta.outgrown[:0]
		if err == nil && p.meta.ints()[0] != 0 {
			err = &device.RangeError{BF16: p.dev.opt.BF16}
		}
		return err
	})
}

// beginStates prepares the tapes of the segments that move a state.
func (p *pass) beginStates() error {
	moves := false
	for i := range p.ops {
		moves = moves || p.ops[i].kind == opDelta
	}
	for i := range p.segments {
		s, ok := p.segments[i].State.(*state)
		if !ok {
			continue
		}
		if s.broken != nil {
			return fmt.Errorf("an earlier replay of the state failed: %w", s.broken)
		}
		if !moves {
			s.passBy()
			continue
		}
		if err := s.beginPass(p.segments[i].N); err != nil {
			return err
		}
	}
	return nil
}

// GPUSeconds is how long the GPU worked on the last Run.
func (p *pass) GPUSeconds() float64 { return p.seconds }

// meta is the integers that a pass's kernels read: a status word, positions and cache slots of the rows, page tables, token ids.
type meta struct {
	host             []int32
	b                *mtl.Buffer
	positions, slots int
	pages            []int         // by segment
	partial          *mtl.Buffer   // what an operation's first dispatch leaves its second
	outgrown         []*mtl.Buffer // earlier ones, given back after the run
}

// ints is the GPU's side.
func (m *meta) ints() []int32 { return int32s(m.b, len(m.host)) }

// layMeta lays the integers out and brings them to the GPU, which is idle.
func (p *pass) layMeta() error {
	m := &p.meta
	m.host = append(m.host[:0], 0, 0)
	m.positions = len(m.host)
	for _, s := range p.segments {
		for i := range s.N {
			m.host = append(m.host, int32(s.Start+i))
		}
	}
	m.slots = len(m.host)
	for _, s := range p.segments {
		for i := range s.N {
			slot := int32(-1) // a pass without attention has no pages
			if at := s.Start + i; at/device.PageTokens < len(s.Pages) {
				slot = s.Pages[at/device.PageTokens]*device.PageTokens + int32(at%device.PageTokens)
			}
			m.host = append(m.host, slot)
		}
	}
	m.pages = m.pages[:0]
	for _, s := range p.segments {
		m.pages = append(m.pages, len(m.host))
		m.host = append(m.host, s.Pages...)
	}
	for i := range p.ops {
		o := &p.ops[i]
		if o.kind == opRotation && len(m.host)%2 == 1 {
			m.host = append(m.host, 0)
		}
		o.at = len(m.host)
		m.host = append(m.host, o.ids...)
		for _, f := range o.inverse {
			turn := turns(f)
			m.host = append(m.host, int32(uint32(turn)), int32(uint32(turn>>32)))
		}
	}
	if m.b == nil || m.b.Length < 4*len(m.host) {
		b, err := p.dev.allocate("a pass's integers", 4*len(m.host)*5/4/8*8+8)
		if err != nil {
			return err
		}
		if m.b != nil {
			p.dev.free(m.b)
		}
		m.b = b
	}
	copy(m.ints(), m.host)
	return nil
}

// growPartial makes room for n words between an operation's two dispatches. A smaller buffer may still be in use by the operations encoded
// before: it is given back when the pass has run.
func (p *pass) growPartial(what string, n int) error {
	if n == 0 || p.meta.partial != nil && p.meta.partial.Length >= 4*n {
		return nil
	}
	b, err := p.dev.allocate(what, 4*n)
	if err != nil {
		return err
	}
	if p.meta.partial != nil {
		p.meta.outgrown = append(p.meta.outgrown, p.meta.partial)
	}
	p.meta.partial = b
	return nil
}

// turns is a rotary frequency, in radians a position, as a fraction of 2^64 of a turn. f is in [0, 2π).
func turns(f float64) uint64 {
	return uint64(f/(2*math.Pi)*(1<<53)+0.5) << 11
}
