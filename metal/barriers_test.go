//go:build unix

package metal_test

import (
	"fmt"
	"strings"
	"testing"

	"slipway/engine/device"
	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/kernels"
)

const barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"

// about are the operations that go through a kernel file.
func about(file string) (all []operation) {
	for _, o := range few() {
		if o.file == file || o.file == "attention" && strings.HasPrefix(file, "attention") {
			all = append(all, o)
		}
	}
	return all
}

// Every barrier of every kernel, removed alone: some order of threads must show it.
func TestKernelBarrierThatNothingNeeds(t *testing.T) {
	metals(t, fake.Configuration{})
	found := 0
	for _, file := range kernels.Names() {
		text := kernels.Source(file)
		for i := range strings.Count(text, barrier) {
			found++
			t.Run(fmt.Sprintf("%s without barrier %d", file, i+1), func(t *testing.T) {
				at := 0
				for range i + 1 {
					at += strings.Index(text[at:], barrier) + len(barrier)
				}
				mutated := text[:at-len(barrier)] + text[at:]
				d := open(t, fake.Configuration{}, metal.Options{Source: func(name string) string {
					if name == file {
						return mutated
					}
					return kernels.Source(name)
				}})
				for seed := range uint64(20) {
					for j, o := range about(file) {
						fake.Configure(fake.Configuration{Seed: seed})
						if check(t, o, d, o.tolerance, uint64(j)) != "" {
							return
						}
					}
				}
				t.Error("nothing shows that it is gone")
			})
		}
	}
	if found < 10 {
		t.Errorf("only %d barriers were found", found)
	}
}

// layer records what a layer of each kind and a head record, as engine/model does.
func layer(w *world) [][]float32 {
	const n, hidden, heads, dim, inner = 3, 64, 2, 64, 96
	g := stateOf(2, 4, 32, 32)
	segments, _ := w.segmentsOf(g, n)
	segments[0].Pages = []int32{0}
	kv, err := w.d.KV(device.KVGeometry{Layers: 1, Heads: 1, HeadDim: dim, Pages: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	m := func(out, in int) device.Matrix { return w.matrix(affine(out, in, 4, 32, f16)) }
	norm, headNorm := w.vector(hidden), w.vector(dim)
	x, y := w.output(n, hidden), w.output(n, hidden)
	qkv, conv, z, a, b, o := w.output(n, g.ConvChannels), w.output(n, g.ConvChannels), w.output(n, 128), w.output(n, 4), w.output(n, 4), w.output(n, 128)
	qGate, q, k, v, attended, table := w.output(n, 2*heads*dim), w.output(n, heads*dim), w.output(n, dim), w.output(n, dim), w.output(n, heads*dim), w.output(n, 16)
	gate, up, selected, logits := w.output(n, inner), w.output(n, inner), w.output(1, hidden), w.output(1, 50)
	embed := m(50, hidden)
	in := []device.Product{{W: m(g.ConvChannels, hidden), Dst: qkv}, {W: m(128, hidden), Dst: z}, {W: m(4, hidden), Dst: b}, {W: m(4, hidden), Dst: a}}
	out := []device.Product{{W: m(hidden, 128), Dst: x, Add: true}}
	inAttention := []device.Product{{W: m(2*heads*dim, hidden), Dst: qGate}, {W: m(dim, hidden), Dst: k}, {W: m(dim, hidden), Dst: v}}
	outAttention := []device.Product{{W: m(hidden, heads*dim), Dst: x, Add: true}}
	gateUp := []device.Product{{W: m(inner, hidden), Dst: gate}, {W: m(inner, hidden), Dst: up}}
	down := []device.Product{{W: m(hidden, inner), Dst: x, Add: true}}
	head := []device.Product{{W: embed, Dst: logits}}
	taps, aLog, dtBias, valueNorm := w.vector(4*g.ConvChannels), w.vector(4), w.vector(4), w.vector(32)
	inverse := []float64{1, 0.5, 0.25, 0.1, 0.05, 0.01, 0.005, 0.001}
	w.run(segments, func(p device.Pass) {
		p.Embed(x, embed, []int32{3, 7, 1})
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
		p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: headNorm, KNorm: headNorm, Rotation: table, KV: kv, Eps: 1e-6})
		p.Attention(device.Attention{Dst: attended, Q: q, QGate: qGate, KV: kv})
		p.Linear(attended, outAttention, n)
		p.Gather(selected, x, []int32{2})
		p.RMSNorm(selected, selected, norm, 1e-6, 1, 0)
		p.Linear(selected, head, 1)
	})
	if w.err != nil {
		return [][]float32{{float32(len(w.err.Error()))}}
	}
	return states(append(rows(x), rows(logits)...), segments, 0)
}

// Every barrier that the host writes, ignored alone: some order of dispatches must show it.
func TestHostBarrierThatNothingNeeds(t *testing.T) {
	d := metals(t, fake.Configuration{})["fast"]
	want := layer(newWorld(t, d, 1))
	if what := differ(want, layer(newWorld(t, reference(), 1)), halved); what != "" {
		t.Fatal(what)
	}
	barriers := int(fake.Count().Barriers)
	if barriers < 15 {
		t.Fatalf("only %d barriers", barriers)
	}
	for skip := 1; skip <= barriers; skip++ {
		shown := false
		for seed := uint64(0); seed < 24 && !shown; seed++ {
			fake.Configure(fake.Configuration{Seed: seed, SkipBarrier: skip})
			shown = differ(layer(newWorld(t, d, 1)), want, 0) != ""
		}
		if !shown {
			t.Errorf("nothing shows that barrier %d of %d is gone", skip, barriers)
		}
	}
}
