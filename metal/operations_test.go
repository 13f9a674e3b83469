//go:build unix

package metal_test

import (
	"fmt"
	"math"
	"testing"

	"slipway/engine/device"
	"slipway/metal/fake"
)

const (
	f32  = device.FormatF32
	f16  = device.FormatF16
	bf16 = device.FormatBF16
)

// Tolerances of the kernels' heads: sums in another order, and 16-bit operands.
const (
	ordered = 1e-4
	halved  = 2e-3
)

// stateless is a pass of n rows of which nothing is remembered.
func stateless(n int) []device.Segment { return []device.Segment{{N: n}} }

func embedding(s shape) operation {
	return operation{"embed " + s.String(), "embed", 1e-6, func(w *world) [][]float32 {
		dst := w.output(4, s.in)
		table := w.matrix(s)
		w.run(stateless(4), func(p device.Pass) { p.Embed(dst, table, []int32{0, int32(s.out - 1), int32(s.out / 2), 0}) })
		return rows(dst)
	}}
}

func norm(n, cols, column int, inPlace bool) operation {
	return operation{fmt.Sprintf("norm [%d,%d] at %d, in place %v", n, cols, column, inPlace), "rms_norm", ordered, func(w *world) [][]float32 {
		x, weight := w.buffer(n, cols), w.vector(cols)
		dst := x
		if !inPlace {
			dst = w.buffer(n, cols+column+3)
		}
		w.run(stateless(n), func(p device.Pass) { p.RMSNorm(dst, x, weight, 1e-6, n, column) })
		return rows(dst)
	}}
}

// linear is two products of one input, one of them added to what is there.
func linear(n int, s shape) operation {
	file, tolerance := "linear_gemv", ordered
	if n > 8 {
		file, tolerance = "linear_gemm", halved
	}
	return operation{fmt.Sprintf("%d rows of %v", n, s), file, tolerance, func(w *world) [][]float32 {
		x, a, b := w.buffer(n, s.in), w.matrix(s), w.matrix(s)
		dst, sum := w.output(n, s.out), w.buffer(n, s.out)
		w.run(stateless(n), func(p device.Pass) {
			p.Linear(x, []device.Product{{W: a, Dst: dst}, {W: b, Dst: sum, Add: true}}, n)
		})
		return append(rows(dst), rows(sum)...)
	}}
}

func swiglu(n, cols int) operation {
	return operation{fmt.Sprintf("swiglu [%d,%d]", n, cols), "swiglu", ordered, func(w *world) [][]float32 {
		gate, up := w.buffer(n, cols), w.buffer(n, cols)
		w.run(stateless(n), func(p device.Pass) { p.SwiGLU(gate, gate, up, n) })
		return rows(gate)
	}}
}

func gathering(n, cols int) operation {
	return operation{fmt.Sprintf("gather %d of 9 rows of %d", n, cols), "gather", 0, func(w *world) [][]float32 {
		src, dst := w.buffer(9, cols), w.output(n, cols)
		indices := make([]int32, n)
		for i := range indices {
			indices[i] = int32(i * 7 % 9)
		}
		w.run(stateless(9), func(p device.Pass) { p.Gather(dst, src, indices) })
		return rows(dst)
	}}
}

func rotating(start, n, pairs int) operation {
	return operation{fmt.Sprintf("rotation of %d pairs from %d", pairs, start), "rotation", 1e-6, func(w *world) [][]float32 {
		dst := w.output(n, 2*pairs)
		inverse := make([]float64, pairs)
		for i := range inverse {
			inverse[i] = math.Pow(1e7, -float64(i)/float64(pairs))
		}
		w.run([]device.Segment{{N: n, Start: start}}, func(p device.Pass) { p.Rotation(dst, inverse) })
		return rows(dst)
	}}
}

// segmentsOf lays segments of these lengths densely, each with a state of g.
func (w *world) segmentsOf(g device.StateGeometry, lengths ...int) (segments []device.Segment, total int) {
	for _, n := range lengths {
		s, err := w.d.State(g)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(s.Release)
		segments = append(segments, device.Segment{Row: total, N: n, State: s})
		total += n
	}
	return segments, total
}

// states appends what the segments' states hold of a layer.
func states(out [][]float32, segments []device.Segment, layer int) [][]float32 {
	for _, s := range segments {
		g := s.State.Geometry()
		matrices := make([]float32, g.ValueHeads*g.ValueDim*g.KeyDim)
		tail := make([]float32, (g.ConvTaps-1)*g.ConvChannels)
		s.State.Read(matrices, tail, layer)
		out = append(out, matrices, tail)
	}
	return out
}

func stateOf(keyHeads, valueHeads, dk, dv int) device.StateGeometry {
	return device.StateGeometry{Layers: 2, KeyHeads: keyHeads, ValueHeads: valueHeads, KeyDim: dk, ValueDim: dv, ConvChannels: 2*keyHeads*dk + valueHeads*dv, ConvTaps: 4}
}

// convolving runs two passes, so that the second begins from the tails of the first.
func convolving(channels int, lengths ...int) operation {
	return operation{fmt.Sprintf("conv of %d channels over %v", channels, lengths), "conv", ordered, func(w *world) [][]float32 {
		g := stateOf(1, 1, 1, channels-2)
		segments, n := w.segmentsOf(g, lengths...)
		x, dst, weight := w.buffer(n, channels), w.output(n, channels), w.vector(4*channels)
		var out [][]float32
		for range 2 {
			w.run(segments, func(p device.Pass) { p.Conv(device.Conv{Dst: dst, X: x, Weight: weight, Layer: 1}) })
			out = append(out, rows(dst)...)
		}
		return states(out, segments, 1)
	}}
}

func delta(g device.StateGeometry, lengths ...int) operation {
	return operation{fmt.Sprintf("delta rule %d/%d heads, %d×%d, over %v", g.KeyHeads, g.ValueHeads, g.ValueDim, g.KeyDim, lengths), "delta_step", ordered, func(w *world) [][]float32 {
		segments, n := w.segmentsOf(g, lengths...)
		aLog, dtBias := w.vector(g.ValueHeads), w.vector(g.ValueHeads)
		dst := w.output(n, g.ValueHeads*g.ValueDim)
		var out [][]float32
		for range 2 {
			qkv, a, b := w.buffer(n, g.ConvChannels), w.buffer(n, g.ValueHeads), w.buffer(n, g.ValueHeads)
			w.run(segments, func(p device.Pass) {
				p.DeltaRule(device.DeltaRule{Dst: dst, QKV: qkv, A: a, B: b, ALog: aLog, DTBias: dtBias, Layer: 1})
			})
			out = append(out, rows(dst)...)
		}
		return states(out, segments, 1)
	}}
}

func gatedNorm(n, heads, dim int) operation {
	return operation{fmt.Sprintf("gated norm of %d rows, %d heads of %d", n, heads, dim), "gated_norm", ordered, func(w *world) [][]float32 {
		o, z, weight := w.buffer(n, heads*dim), w.buffer(n, heads*dim), w.vector(dim)
		w.run(stateless(n), func(p device.Pass) {
			p.GatedNorm(device.GatedNorm{Dst: o, O: o, Z: z, Weight: weight, HeadDim: dim, Eps: 1e-6})
		})
		return rows(o)
	}}
}

// context is where a segment of an attention test stands.
type place struct {
	start, n int
	policy   device.AttentionPolicy
}

// attending fills the pages of every segment from position 0, in chunks, and compares queries, attention and the last keys and values of
// the last chunk. Pages are given out in an order of their own.
func attending(heads, kvHeads, dim, pairs int, places ...place) operation {
	return operation{fmt.Sprintf("attention %d/%d heads of %d at %v", heads, kvHeads, dim, places), "attention", halved, func(w *world) [][]float32 {
		total, pages := 0, 0
		for _, s := range places {
			total += s.n
			pages += (s.start+s.n)/device.PageTokens + 1
		}
		kv, err := w.d.KV(device.KVGeometry{Layers: 2, Heads: kvHeads, HeadDim: dim, Pages: pages + 1})
		if err != nil {
			w.t.Fatal(err)
		}
		tables := make([][]int32, len(places))
		next := int32(pages)
		for i, s := range places {
			for range (s.start+s.n)/device.PageTokens + 1 {
				tables[i] = append(tables[i], next)
				next--
			}
		}
		inverse := make([]float64, pairs)
		for i := range inverse {
			inverse[i] = math.Pow(1e4, -float64(i)/float64(pairs))
		}
		qNorm, kNorm := w.vector(dim), w.vector(dim)
		step := func(segments []device.Segment, n int) (q, dst device.Buffer) {
			qGate, k, v, table := w.buffer(n, 2*heads*dim), w.buffer(n, kvHeads*dim), w.buffer(n, kvHeads*dim), w.output(n, 2*pairs)
			q, dst = w.output(n, heads*dim), w.output(n, heads*dim)
			w.run(segments, func(p device.Pass) {
				p.Rotation(table, inverse)
				p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: qNorm, KNorm: kNorm, Rotation: table, KV: kv, Layer: 1, Eps: 1e-6})
				p.Attention(device.Attention{Dst: dst, Q: q, QGate: qGate, KV: kv, Layer: 1})
			})
			return q, dst
		}
		for i, s := range places { // what came before, without asking for answers
			if s.start > 0 {
				k, v, qGate, table, q := w.buffer(s.start, kvHeads*dim), w.buffer(s.start, kvHeads*dim), w.buffer(s.start, 2*heads*dim), w.output(s.start, 2*pairs), w.output(s.start, heads*dim)
				w.run([]device.Segment{{N: s.start, Pages: tables[i]}}, func(p device.Pass) {
					p.Rotation(table, inverse)
					p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: qNorm, KNorm: kNorm, Rotation: table, KV: kv, Layer: 1, Eps: 1e-6})
				})
			}
		}
		var segments []device.Segment
		at := 0
		for i, s := range places {
			segments = append(segments, device.Segment{Row: at, N: s.n, Start: s.start, Pages: tables[i], Policy: s.policy})
			at += s.n
		}
		q, dst := step(segments, total)
		out := append(rows(q), rows(dst)...)
		for i, s := range places {
			keys, values := make([]float32, kvHeads*dim), make([]float32, kvHeads*dim)
			last := s.start + s.n - 1
			kv.Read(keys, values, 1, tables[i][last/device.PageTokens], last%device.PageTokens)
			out = append(out, keys, values)
		}
		return out
	}}
}

var near = device.AttentionPolicy{Sink: 40, Window: 70, DenseFrom: 1 << 20}

// tileShapes stand on both sides of every block edge of the kernels: 32 lanes, 16-column and 512-column steps of linear_gemv, tiles of 32
// of linear_gemm, 16 rows and 32 keys of attention_flash, 8 rows of decode, pages and splits of 256.
func tileShapes() (all []operation) {
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for i, group := range []int{32, 64, 128} {
			all = append(all, embedding(affine(5, 256, bits, group, []device.Format{f16, bf16, f32}[i])), linear(3, affine(9, 256, bits, group, []device.Format{bf16, f32, f16}[i])),
				linear(10, affine(9, 256, bits, group, f16)))
		}
	}
	for _, f := range []device.Format{f32, f16, bf16} {
		all = append(all, embedding(shape{out: 3, in: 33, format: f}))
		for _, in := range []int{1, 3, 4, 5, 31, 32, 33, 124, 128, 132} {
			all = append(all, linear(1, shape{out: 5, in: in, format: f}), linear(9, shape{out: 5, in: in, format: f}))
		}
	}
	for _, cols := range []int{1, 31, 32, 33, 255, 256, 257, 320} {
		all = append(all, norm(3, cols, 0, false), norm(2, cols, 5, false), norm(2, cols, 0, true), swiglu(3, cols), gathering(4, cols))
	}
	for _, n := range []int{1, 2, 7, 8, 9, 31, 32, 33, 65} {
		for _, out := range []int{1, 7, 8, 9, 31, 32, 33} {
			all = append(all, linear(n, affine(out, 64, 4, 32, f16)))
		}
		all = append(all, linear(n, affine(40, 544, 8, 32, bf16)), linear(n, affine(12, 512, 4, 64, bf16)), gatedNorm(n, 3, 32))
	}
	for _, dim := range []int{1, 31, 33, 128} {
		all = append(all, gatedNorm(2, 5, dim))
	}
	all = append(all, rotating(0, 5, 1), rotating(262140, 4, 32), rotating(100, 33, 33))
	for _, n := range []int{1, 2, 3, 4, 5, 70} {
		all = append(all, convolving(67, n), convolving(64, n, 1, 3), delta(stateOf(2, 6, 32, 33), n, 2), delta(stateOf(1, 2, 64, 4), n), delta(stateOf(2, 4, 8, 16), n, 1))
	}
	all = append(all, delta(stateOf(1, 3, 128, 128), 9))
	for _, n := range []int{1, 2, 8, 9, 15, 16, 17, 33} {
		all = append(all, attending(2, 1, 64, 8, place{start: 0, n: n}), attending(3, 3, 32, 4, place{start: 30, n: n}))
	}
	for _, start := range []int{31, 32, 255, 256, 700} {
		all = append(all, attending(2, 1, 64, 8, place{start: start, n: 1}, place{start: start, n: 17, policy: near}, place{start: 3, n: 2, policy: near}),
			attending(2, 2, 64, 32, place{start: start, n: 20, policy: device.AttentionPolicy{Sink: 40, Window: 70, DenseFrom: start + 9}}))
	}
	return append(all, attending(2, 1, 128, 16, place{start: 40, n: 18}, place{start: 270, n: 3}), attending(6, 1, 256, 32, place{start: 40, n: 18}, place{start: 270, n: 3}))
}

// largest27B are the 27B's widest rows, in slices of its matrices.
func largest27B() []operation {
	return []operation{
		norm(1, 5120, 0, false), linear(1, affine(24, 17408, 4, 64, bf16)), linear(9, affine(33, 17408, 4, 64, bf16)), linear(1, affine(17, 5120, 8, 64, bf16)),
		swiglu(1, 17408), convolving(10240, 2), delta(stateOf(16, 48, 128, 128), 2), gatedNorm(1, 48, 128), attending(24, 4, 256, 32, place{start: 300, n: 2}),
	}
}

// check runs an operation on Metal and returns how it differs from the reference.
func check(t testing.TB, o operation, d device.Device, tolerance float64, seed uint64) string {
	t.Helper()
	want := o.do(newWorld(t, reference(), seed))
	w := newWorld(t, d, seed)
	got := o.do(w)
	if w.err != nil {
		return w.err.Error()
	}
	return differ(got, want, tolerance)
}

func TestKernelThatDiffersFromTheReference(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []operation
	}{{"tile shapes", tileShapes()}, {"largest of the 27B", largest27B()}} {
		t.Run(c.name, func(t *testing.T) {
			for kind, d := range metals(t, fake.Configuration{Seed: 5, Threads: 2}) {
				for i, o := range c.all {
					t.Run(kind+"/"+o.name, func(t *testing.T) {
						if what := check(t, o, d, o.tolerance, uint64(i)); what != "" {
							t.Error(what)
						}
					})
				}
				if list := d.Degraded(); len(list) > 0 {
					t.Error(list)
				}
			}
		})
	}
}
