//go:build unix

package metal_test

import (
	"context"
	"testing"

	"slipway/engine/device"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

// structure is the 27B's order of 64 layers, three of the delta rule and one of attention in turn, with tiny widths.
type structure struct {
	pass     device.Pass
	segments []device.Segment
	record   func(p device.Pass)
}

func newStructure(t testing.TB, d device.Device, n int) *structure {
	const layers, hidden, heads, dim, inner = 64, 64, 2, 64, 96
	w := newWorld(t, d, 1)
	g := device.StateGeometry{Layers: layers * 3 / 4, KeyHeads: 1, ValueHeads: 2, KeyDim: 32, ValueDim: 32,
		ConvChannels: 128, ConvTaps: 4}
	segments, _ := w.SegmentsOf(g, n)
	segments[0].Pages = []int32{0}
	if err := segments[0].State.Record(16); err != nil {
		t.Fatal(err)
	}
	kv, err := d.KV(device.KVGeometry{Layers: layers / 4, Heads: 1, HeadDim: dim, Pages: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := func(out, in int) device.Matrix { return w.Matrix(selftest.Affine(out, in, 4, 32, device.FormatF16)) }
	x, y, rotation := w.Output(n, hidden), w.Output(n, hidden), w.Output(n, 16)
	qkv, conv, z, a, b, o := w.Output(n, g.ConvChannels), w.Output(n, g.ConvChannels), w.Output(n, 64), w.Output(n, 2),
		w.Output(n, 2), w.Output(n, 64)
	qGate, q, k, v, attended := w.Output(n, 2*heads*dim), w.Output(n, heads*dim), w.Output(n, dim), w.Output(n, dim),
		w.Output(n, heads*dim)
	gate, up, selected, logits := w.Output(n, inner), w.Output(n, inner), w.Output(1, hidden), w.Output(1, 50)
	values, ids := w.Output(1, 20), w.Output(1, 20)
	norm, headNorm, valueNorm, taps, vector := w.Vector(hidden), w.Vector(dim), w.Vector(32),
		w.Vector(4*g.ConvChannels), w.Vector(2)
	embed := m(50, hidden)
	in := []device.Product{{W: m(g.ConvChannels, hidden), Dst: qkv}, {W: m(64, hidden), Dst: z},
		{W: m(2, hidden), Dst: b}, {W: m(2, hidden), Dst: a}}
	out := []device.Product{{W: m(hidden, 64), Dst: x, Add: true}}
	inAttention := []device.Product{{W: m(2*heads*dim, hidden), Dst: qGate}, {W: m(dim, hidden), Dst: k},
		{W: m(dim, hidden), Dst: v}}
	outAttention := []device.Product{{W: m(hidden, heads*dim), Dst: x, Add: true}}
	gateUp := []device.Product{{W: m(inner, hidden), Dst: gate}, {W: m(inner, hidden), Dst: up}}
	down := []device.Product{{W: m(hidden, inner), Dst: x, Add: true}}
	head := []device.Product{{W: embed, Dst: logits}}
	tokens, last, inverse := make([]int32, n), []int32{int32(n - 1)}, []float64{1, 0.5, 0.25, 0.1, 0.05, 0.01, 0.005,
		0.001}
	return &structure{pass: d.NewPass(), segments: segments, record: func(p device.Pass) {
		p.Embed(x, embed, tokens)
		p.Rotation(rotation, inverse)
		for l := range layers {
			p.RMSNorm(y, x, norm, 1e-6, n, 0)
			if l%4 == 3 {
				p.Linear(y, inAttention, n)
				p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: headNorm, KNorm: headNorm,
					Rotation: rotation, KV: kv, Layer: l / 4, Eps: 1e-6})
				p.Attention(device.Attention{Dst: attended, Q: q, QGate: qGate, KV: kv, Layer: l / 4})
				p.Linear(attended, outAttention, n)
			} else {
				at := l - l/4
				p.Linear(y, in, n)
				p.Conv(device.Conv{Dst: conv, X: qkv, Weight: taps, Layer: at})
				p.DeltaRule(device.DeltaRule{Dst: o, QKV: conv, A: a, B: b, ALog: vector, DTBias: vector, Layer: at})
				p.GatedNorm(device.GatedNorm{Dst: o, O: o, Z: z, Weight: valueNorm, HeadDim: 32, Eps: 1e-6})
				p.Linear(o, out, n)
			}
			p.RMSNorm(y, x, norm, 1e-6, n, 0)
			p.Linear(y, gateUp, n)
			p.SwiGLU(gate, gate, up, n)
			p.Linear(gate, down, n)
		}
		p.Gather(selected, x, last)
		p.RMSNorm(selected, selected, norm, 1e-6, 1, 0)
		p.Linear(selected, head, 1)
		p.TopK(values, ids, logits, 1)
	}}
}

// token runs one decoded token, or the rows of a verification.
func (s *structure) token(t testing.TB) {
	s.pass.Begin(s.segments)
	s.record(s.pass)
	if err := s.pass.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestTokenOf64LayersTakesFewCalls(t *testing.T) {
	for _, c := range []struct {
		name string
		rows int
	}{{"decode", 1}, {"verification", 5}} {
		t.Run(c.name, func(t *testing.T) {
			s := newStructure(t, metals(t, fake.Configuration{NoWork: true})["fast"], c.rows)
			s.token(t)
			fake.Configure(fake.Configuration{NoWork: true})
			s.token(t)
			n := fake.Count()
			t.Logf("%d dispatches, %d barriers, %d messages, %d command buffers", n.Dispatches, n.Barriers, n.Calls,
				n.Commits)
			if n.Dispatches > 600 || n.Calls > 4000 {
				t.Errorf("%d dispatches and %d messages of a token, wanted at most 600 and 4000", n.Dispatches, n.Calls)
			}
			if n.Dispatches < 64*8 {
				t.Errorf("only %d dispatches: that is not the whole token", n.Dispatches)
			}
		})
	}
}

// The host's share of a token: recording, encoding and the fake's bookkeeping, with kernels that do nothing.
func BenchmarkTokenOf64LayersWithoutKernels(b *testing.B) {
	s := newStructure(b, metals(b, fake.Configuration{NoWork: true})["fast"], 1)
	s.token(b)
	fake.Configure(fake.Configuration{NoWork: true})
	b.ReportAllocs()
	for b.Loop() {
		s.token(b)
	}
	n := fake.Count()
	b.ReportMetric(float64(n.Dispatches)/float64(b.N), "dispatches/op")
	b.ReportMetric(float64(n.Calls)/float64(b.N), "messages/op")
}
