//go:build unix

package metal_test

import (
	"fmt"
	"regexp"
	"testing"

	"slipway/engine/device"
	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/kernels"
	"slipway/metal/selftest"
)

var anyBarrier = regexp.MustCompile(`(threadgroup|simdgroup)_barrier\(mem_flags::mem_threadgroup\);`)

// Each barrier of each kernel is removed alone. Some order of threads must then give a wrong result.
func TestEveryKernelBarrierIsNeeded(t *testing.T) {
	metals(t, fake.Configuration{})
	found := 0
	for _, file := range kernels.Names() {
		text := kernels.Source(file)
		for i, at := range anyBarrier.FindAllStringIndex(text, -1) {
			found++
			t.Run(fmt.Sprintf("%s without barrier %d", file, i+1), func(t *testing.T) {
				d := open(t, fake.Configuration{}, metal.Options{Source: with(file, text[:at[0]]+text[at[1]:])})
				for seed := range uint64(20) {
					for j, o := range about(file) {
						fake.Configure(fake.Configuration{Seed: seed})
						if check(o, d, uint64(j)) != "" {
							return
						}
					}
				}
				t.Error("no order of threads gives a wrong result without it")
			})
		}
	}
	if found < 25 {
		t.Errorf("only %d barriers were found", found)
	}
}

// layer records what a layer of each kind and a head record, as engine/model does, over segments of some lengths.
func layer(t *testing.T, w *selftest.World, format device.KVFormat, lengths ...int) [][]float32 {
	const hidden, heads, dim, inner = 64, 2, 64, 96
	g := selftest.StateOf(2, 4, 32, 32)
	segments, n := w.SegmentsOf(g, lengths...)
	for i := range segments {
		segments[i].Pages = []int32{int32(i)}
	}
	kv, err := w.Device.KV(device.KVGeometry{Layers: 1, Heads: 1, HeadDim: dim, Pages: len(lengths), Format: format})
	if err != nil {
		t.Fatal(err)
	}
	m := func(out, in int) device.Matrix { return w.Matrix(selftest.Affine(out, in, 4, 32, device.FormatF16)) }
	norm, headNorm := w.Vector(hidden), w.Vector(dim)
	x, y := w.Output(n, hidden), w.Output(n, hidden)
	qkv, conv, z, a, b, o := w.Output(n, g.ConvChannels), w.Output(n, g.ConvChannels), w.Output(n, 128), w.Output(n, 4),
		w.Output(n, 4), w.Output(n, 128)
	qGate, q, k, v, attended, table := w.Output(n, 2*heads*dim), w.Output(n, heads*dim), w.Output(n, dim),
		w.Output(n, dim), w.Output(n, heads*dim), w.Output(n, 16)
	gate, up, selected, logits := w.Output(n, inner), w.Output(n, inner), w.Output(1, hidden), w.Output(1, 50)
	values, ids := w.Output(1, 5), w.Output(1, 5)
	embed := m(50, hidden)
	in := []device.Product{{W: m(g.ConvChannels, hidden), Dst: qkv}, {W: m(128, hidden), Dst: z},
		{W: m(4, hidden), Dst: b}, {W: m(4, hidden), Dst: a}}
	out := []device.Product{{W: m(hidden, 128), Dst: x, Add: true}}
	inAttention := []device.Product{{W: m(2*heads*dim, hidden), Dst: qGate}, {W: m(dim, hidden), Dst: k},
		{W: m(dim, hidden), Dst: v}}
	outAttention := []device.Product{{W: m(hidden, heads*dim), Dst: x, Add: true}}
	gateUp := []device.Product{{W: m(inner, hidden), Dst: gate}, {W: m(inner, hidden), Dst: up}}
	down := []device.Product{{W: m(hidden, inner), Dst: x, Add: true}}
	head := []device.Product{{W: embed, Dst: logits}}
	taps, aLog, dtBias, valueNorm := w.Vector(4*g.ConvChannels), w.Vector(4), w.Vector(4), w.Vector(32)
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(i * 7 % 50)
	}
	inverse := []float64{1, 0.5, 0.25, 0.1, 0.05, 0.01, 0.005, 0.001}
	err = w.Pass(segments, func(p device.Pass) {
		p.Embed(x, embed, tokens)
		p.Rotation(table, inverse)
		p.RMSNorm(y, x, norm, 1e-6, n, 0)
		p.Linear(y, in, n)
		p.Conv(device.Conv{Dst: conv, X: qkv, Weight: taps})
		p.DeltaRule(device.DeltaRule{Dst: o, QKV: conv, A: a, B: b, ALog: aLog, DTBias: dtBias})
		p.GatedNorm(device.GatedNorm{Dst: o, O: o, Z: z, Weight: valueNorm, HeadDim: 32, Eps: 1e-6})
		p.Linear(o, out, n)
		p.RMSNorm(y, x, norm, 1e-6, n, 0)
		p.Linear(y, gateUp, n)
		p.SwiGLU(gate, gate, up, n)
		p.Linear(gate, down, n)
		p.RMSNorm(y, x, norm, 1e-6, n, 0)
		p.Linear(y, inAttention, n)
		p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: headNorm, KNorm: headNorm,
			Rotation: table, KV: kv, Eps: 1e-6})
		p.Attention(device.Attention{Dst: attended, Q: q, QGate: qGate, KV: kv})
		p.Linear(attended, outAttention, n)
		p.Gather(selected, x, []int32{int32(n - 1)})
		p.RMSNorm(selected, selected, norm, 1e-6, 1, 0)
		p.Linear(selected, head, 1)
		p.TopK(values, ids, logits, 1)
	})
	if err != nil { // a mutated pass may leave the range of f16: that shows too
		return [][]float32{{float32(len(err.Error()))}}
	}
	return selftest.States(append(append(selftest.Rows(x), selftest.Rows(logits)...), selftest.Rows(values)...),
		segments, 0)
}

// Each barrier that the host writes is ignored alone. Some order of dispatches must then give a wrong result. A token
// or a verification, a prefill beside a token, and attention over 8-bit pages use different kernels, and so different
// barriers.
func TestEveryHostBarrierIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name    string
		plain   bool
		format  device.KVFormat
		lengths []int
		least   int // barriers
	}{
		{"verification", false, device.KVNative, []int{3}, 15},
		{"prefill and a token", false, device.KVNative, []int{40, 1}, 15},
		{"two tokens over 8 bits", false, device.KVQ8, []int{1, 1}, 15},
		{"plain kernels", true, device.KVNative, []int{17, 2}, 15},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, fake.Configuration{}, metal.Options{Plain: c.plain})
			fake.Configure(fake.Configuration{})
			run := func(d device.Device) [][]float32 {
				w := selftest.NewWorld(d, 1)
				defer w.Release()
				return layer(t, w, c.format, c.lengths...)
			}
			want := run(d)
			barriers := int(fake.Count().Barriers)
			if what := differ(want, run(reference()), 2e-2); what != "" { // of a whole layer
				t.Fatal(what)
			}
			if barriers < c.least {
				t.Fatalf("only %d barriers", barriers)
			}
			for skip := 1; skip <= barriers; skip++ {
				shown := false
				for seed := uint64(0); seed < 24 && !shown; seed++ {
					fake.Configure(fake.Configuration{Seed: seed, SkipBarrier: skip})
					shown = differ(run(d), want, 0) != ""
				}
				if !shown {
					t.Errorf("no order of dispatches gives a wrong result without barrier %d of %d", skip, barriers)
				}
			}
		})
	}
}

// Two operations share one buffer: that alone decides whether there is a barrier. Without one the fake runs them in
// either order.
func TestOperationsOnOneBufferKeepTheirOrder(t *testing.T) {
	d := metals(t, fake.Configuration{})["fast"]
	gather := func(p device.Pass, dst, src device.Buffer) { p.Gather(dst, src, []int32{2, 0, 1}) }
	for _, c := range []struct {
		name     string
		record   func(p device.Pass, x, y, z, other device.Buffer)
		barriers uint64
	}{
		{"write after read", func(p device.Pass, x, y, z, other device.Buffer) { gather(p, y, x); gather(p, x, z) }, 1},
		{"read after write", func(p device.Pass, x, y, z, other device.Buffer) { gather(p, y, x); gather(p, z, y) }, 1},
		{"write after write", func(p device.Pass, x, y, z, other device.Buffer) { gather(p, y, x); gather(p, y, z) },
			1},
		{"read after read", func(p device.Pass, x, y, z, other device.Buffer) { gather(p, y, x); gather(p, z, x) }, 0},
		{"nothing shared", func(p device.Pass, x, y, z, other device.Buffer) { gather(p, y, x); gather(p, z, other) },
			0},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(d device.Device) (rows [][]float32) {
				w := selftest.NewWorld(d, 1)
				defer w.Release()
				buffers := [4]device.Buffer{w.Buffer(3, 5), w.Buffer(3, 5), w.Buffer(3, 5), w.Buffer(3, 5)}
				w.Run(selftest.Stateless(3), func(p device.Pass) {
					c.record(p, buffers[0], buffers[1], buffers[2], buffers[3])
				})
				for _, b := range buffers {
					rows = append(rows, selftest.Rows(b)...)
				}
				return rows
			}
			want := run(reference())
			for seed := range uint64(24) {
				fake.Configure(fake.Configuration{Seed: seed})
				if what := differ(run(d), want, 0); what != "" {
					t.Fatalf("seed %d: %s", seed, what)
				}
				if n := fake.Count().Barriers; n != c.barriers {
					t.Fatalf("%d barriers, wanted %d", n, c.barriers)
				}
			}
		})
	}
}
