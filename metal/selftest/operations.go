package selftest

import (
	"bytes"
	"fmt"
	"math"

	"slipway/engine/device"
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

// Stateless is a pass of n rows of which nothing is remembered.
func Stateless(n int) []device.Segment { return []device.Segment{{N: n}} }

func embedding(s Shape) Operation {
	return Operation{"embed " + s.String(), []string{"embed"}, 1e-6, func(w *World) [][]float32 {
		dst := w.Output(4, s.in)
		table := w.Matrix(s)
		w.Run(Stateless(4), func(p device.Pass) { p.Embed(dst, table, []int32{0, int32(s.out - 1), int32(s.out / 2), 0}) })
		return Rows(dst)
	}}
}

func norm(n, cols, column int, inPlace bool) Operation {
	return Operation{fmt.Sprintf("norm [%d,%d] at %d, in place %v", n, cols, column, inPlace), []string{"rms_norm"}, ordered, func(w *World) [][]float32 {
		x, weight := w.Buffer(n, cols), w.Vector(cols)
		dst := x
		if !inPlace {
			dst = w.Buffer(n, cols+column+3)
		}
		w.Run(Stateless(n), func(p device.Pass) { p.RMSNorm(dst, x, weight, 1e-6, n, column) })
		return Rows(dst)
	}}
}

// linear is two products of one input, one of them added to what is there.
func linear(n int, s Shape) Operation {
	file, tolerance := "linear_gemv", ordered
	if n > 8 {
		file, tolerance = "linear_gemm", halved
	}
	return Operation{fmt.Sprintf("%d rows of %v", n, s), []string{file}, tolerance, func(w *World) [][]float32 {
		x, a, b := w.Buffer(n, s.in), w.Matrix(s), w.Matrix(s)
		dst, sum := w.Output(n, s.out), w.Buffer(n, s.out)
		w.Run(Stateless(n), func(p device.Pass) {
			p.Linear(x, []device.Product{{W: a, Dst: dst}, {W: b, Dst: sum, Add: true}}, n)
		})
		return append(Rows(dst), Rows(sum)...)
	}}
}

func swiglu(n, cols int) Operation {
	return Operation{fmt.Sprintf("swiglu [%d,%d]", n, cols), []string{"swiglu"}, ordered, func(w *World) [][]float32 {
		gate, up := w.Buffer(n, cols), w.Buffer(n, cols)
		w.Run(Stateless(n), func(p device.Pass) { p.SwiGLU(gate, gate, up, n) })
		return Rows(gate)
	}}
}

func gathering(n, cols int) Operation {
	return Operation{fmt.Sprintf("gather %d of 9 rows of %d", n, cols), []string{"gather"}, 0, func(w *World) [][]float32 {
		src, dst := w.Buffer(9, cols), w.Output(n, cols)
		indices := make([]int32, n)
		for i := range indices {
			indices[i] = int32(i * 7 % 9)
		}
		w.Run(Stateless(9), func(p device.Pass) { p.Gather(dst, src, indices) })
		return Rows(dst)
	}}
}

func rotating(start, n, pairs int) Operation {
	return Operation{fmt.Sprintf("rotation of %d pairs from %d", pairs, start), []string{"rotation"}, 1e-6, func(w *World) [][]float32 {
		dst := w.Output(n, 2*pairs)
		inverse := make([]float64, pairs)
		for i := range inverse {
			inverse[i] = math.Pow(1e7, -float64(i)/float64(pairs))
		}
		w.Run([]device.Segment{{N: n, Start: start}}, func(p device.Pass) { p.Rotation(dst, inverse) })
		return Rows(dst)
	}}
}

// SegmentsOf lays segments of these lengths densely, each with a state of g.
func (w *World) SegmentsOf(g device.StateGeometry, lengths ...int) (segments []device.Segment, total int) {
	for _, n := range lengths {
		s, err := w.Device.State(g)
		w.must(err)
		w.made = append(w.made, s)
		segments = append(segments, device.Segment{Row: total, N: n, State: s})
		total += n
	}
	return segments, total
}

// States appends what the segments' states hold of a layer.
func States(out [][]float32, segments []device.Segment, layer int) [][]float32 {
	for _, s := range segments {
		g := s.State.Geometry()
		matrices := make([]float32, g.ValueHeads*g.ValueDim*g.KeyDim)
		tail := make([]float32, (g.ConvTaps-1)*g.ConvChannels)
		s.State.Read(matrices, tail, layer)
		out = append(out, matrices, tail)
	}
	return out
}

// StateOf is two layers of a state.
func StateOf(keyHeads, valueHeads, dk, dv int) device.StateGeometry {
	return device.StateGeometry{Layers: 2, KeyHeads: keyHeads, ValueHeads: valueHeads, KeyDim: dk, ValueDim: dv, ConvChannels: 2*keyHeads*dk + valueHeads*dv, ConvTaps: 4}
}

// convolving runs two passes, so that the second begins from the tails of the first.
func convolving(channels int, lengths ...int) Operation {
	return Operation{fmt.Sprintf("conv of %d channels over %v", channels, lengths), []string{"conv"}, ordered, func(w *World) [][]float32 {
		g := StateOf(1, 1, 1, channels-2)
		segments, n := w.SegmentsOf(g, lengths...)
		x, dst, weight := w.Buffer(n, channels), w.Output(n, channels), w.Vector(4*channels)
		var out [][]float32
		for range 2 {
			w.Run(segments, func(p device.Pass) { p.Conv(device.Conv{Dst: dst, X: x, Weight: weight, Layer: 1}) })
			out = append(out, Rows(dst)...)
		}
		return States(out, segments, 1)
	}}
}

func delta(g device.StateGeometry, lengths ...int) Operation {
	return Operation{fmt.Sprintf("delta rule %d/%d heads, %d×%d, over %v", g.KeyHeads, g.ValueHeads, g.ValueDim, g.KeyDim, lengths), []string{"delta_step"}, ordered, func(w *World) [][]float32 {
		segments, n := w.SegmentsOf(g, lengths...)
		aLog, dtBias := w.Vector(g.ValueHeads), w.Vector(g.ValueHeads)
		dst := w.Output(n, g.ValueHeads*g.ValueDim)
		var out [][]float32
		for range 2 {
			qkv, a, b := w.Buffer(n, g.ConvChannels), w.Buffer(n, g.ValueHeads), w.Buffer(n, g.ValueHeads)
			w.Run(segments, func(p device.Pass) {
				p.DeltaRule(device.DeltaRule{Dst: dst, QKV: qkv, A: a, B: b, ALog: aLog, DTBias: dtBias, Layer: 1})
			})
			out = append(out, Rows(dst)...)
		}
		return States(out, segments, 1)
	}}
}

func gatedNorm(n, heads, dim int) Operation {
	return Operation{fmt.Sprintf("gated norm of %d rows, %d heads of %d", n, heads, dim), []string{"gated_norm"}, ordered, func(w *World) [][]float32 {
		o, z, weight := w.Buffer(n, heads*dim), w.Buffer(n, heads*dim), w.Vector(dim)
		w.Run(Stateless(n), func(p device.Pass) {
			p.GatedNorm(device.GatedNorm{Dst: o, O: o, Z: z, Weight: weight, HeadDim: dim, Eps: 1e-6})
		})
		return Rows(o)
	}}
}

// context is where a segment of an attention test stands.
type place struct {
	start, n int
	policy   device.AttentionPolicy
}

func (p place) String() string {
	if p.policy.Window == 0 {
		return fmt.Sprintf("%d+%d", p.start, p.n)
	}
	return fmt.Sprintf("%d+%d within %d, %d, dense from %d", p.start, p.n, p.policy.Sink, p.policy.Window, p.policy.DenseFrom)
}

// attending fills the pages of every segment from position 0, in chunks, and compares queries, attention and the last keys and values of
// the last chunk. Pages are given out in an order of their own.
func attending(heads, kvHeads, dim, pairs int, places ...place) Operation {
	return Operation{fmt.Sprintf("attention %d/%d heads of %d at %v", heads, kvHeads, dim, places), []string{"attention_flash", "attention_decode", "attention_input"}, halved, func(w *World) [][]float32 {
		total, pages := 0, 0
		for _, s := range places {
			total += s.n
			pages += (s.start+s.n)/device.PageTokens + 1
		}
		kv, err := w.Device.KV(device.KVGeometry{Layers: 2, Heads: kvHeads, HeadDim: dim, Pages: pages + 1})
		w.must(err)
		if pool, ok := kv.(device.PageTransfer); ok { // NaN where nothing was written: it must not be seen
			unwritten := bytes.Repeat([]byte{0xFF}, pool.PageBytes(device.PageTokens))
			for page := range pages + 1 {
				pool.WritePage(int32(page), unwritten, device.PageTokens)
			}
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
		qNorm, kNorm := w.Vector(dim), w.Vector(dim)
		step := func(segments []device.Segment, n int) (q, dst device.Buffer) {
			qGate, k, v, table := w.Buffer(n, 2*heads*dim), w.Buffer(n, kvHeads*dim), w.Buffer(n, kvHeads*dim), w.Output(n, 2*pairs)
			q, dst = w.Output(n, heads*dim), w.Output(n, heads*dim)
			w.Run(segments, func(p device.Pass) {
				p.Rotation(table, inverse)
				p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: qNorm, KNorm: kNorm, Rotation: table, KV: kv, Layer: 1, Eps: 1e-6})
				p.Attention(device.Attention{Dst: dst, Q: q, QGate: qGate, KV: kv, Layer: 1})
			})
			return q, dst
		}
		for i, s := range places { // what came before, without asking for answers
			if s.start > 0 {
				k, v, qGate, table, q := w.Buffer(s.start, kvHeads*dim), w.Buffer(s.start, kvHeads*dim), w.Buffer(s.start, 2*heads*dim), w.Output(s.start, 2*pairs), w.Output(s.start, heads*dim)
				w.Run([]device.Segment{{N: s.start, Pages: tables[i]}}, func(p device.Pass) {
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
		out := append(Rows(q), Rows(dst)...)
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

// TileShapes stand on both sides of every block edge of the kernels: 32 lanes, 16-column and 512-column steps of linear_gemv, tiles of 32
// of linear_gemm, 16 rows and 32 keys of attention_flash, 8 rows of decode, pages and splits of 256.
func TileShapes() (all []Operation) {
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for i, group := range []int{32, 64, 128} {
			all = append(all, embedding(Affine(5, 256, bits, group, []device.Format{f16, bf16, f32}[i])), linear(3, Affine(9, 256, bits, group, []device.Format{bf16, f32, f16}[i])),
				linear(10, Affine(9, 256, bits, group, f16)))
		}
	}
	for _, f := range []device.Format{f32, f16, bf16} {
		all = append(all, embedding(Shape{out: 3, in: 33, format: f}))
		for _, in := range []int{1, 3, 4, 5, 31, 32, 33, 124, 128, 132} {
			all = append(all, linear(1, Shape{out: 5, in: in, format: f}), linear(9, Shape{out: 5, in: in, format: f}))
		}
	}
	for _, cols := range []int{1, 31, 32, 33, 255, 256, 257, 320} {
		all = append(all, norm(3, cols, 0, false), norm(2, cols, 5, false), norm(2, cols, 0, true), swiglu(3, cols), gathering(4, cols))
	}
	for _, n := range []int{1, 2, 7, 8, 9, 31, 32, 33, 65} {
		for _, out := range []int{1, 7, 8, 9, 31, 32, 33} {
			all = append(all, linear(n, Affine(out, 64, 4, 32, f16)))
		}
		all = append(all, linear(n, Affine(40, 544, 8, 32, bf16)), linear(n, Affine(12, 512, 4, 64, bf16)), gatedNorm(n, 3, 32))
	}
	for _, dim := range []int{1, 31, 33, 128} {
		all = append(all, gatedNorm(2, 5, dim))
	}
	all = append(all, rotating(0, 5, 1), rotating(262140, 4, 32), rotating(100, 33, 33))
	for _, n := range []int{1, 2, 3, 4, 5, 70} {
		all = append(all, convolving(67, n), convolving(64, n, 1, 3), delta(StateOf(2, 6, 32, 33), n, 2), delta(StateOf(1, 2, 64, 4), n), delta(StateOf(2, 4, 8, 16), n, 1))
	}
	all = append(all, delta(StateOf(1, 3, 128, 128), 9))
	for _, n := range []int{1, 2, 8, 9, 15, 16, 17, 33} {
		all = append(all, attending(2, 1, 64, 8, place{start: 0, n: n}), attending(3, 3, 32, 4, place{start: 30, n: n}))
	}
	for _, start := range []int{31, 32, 255, 256, 700} {
		all = append(all, attending(2, 1, 64, 8, place{start: start, n: 1}, place{start: start, n: 17, policy: near}, place{start: 3, n: 2, policy: near}),
			attending(2, 2, 64, 32, place{start: start, n: 20, policy: device.AttentionPolicy{Sink: 40, Window: 70, DenseFrom: start + 9}}))
	}
	return append(all, attending(2, 1, 128, 16, place{start: 40, n: 18}, place{start: 270, n: 3}), attending(6, 1, 256, 32, place{start: 40, n: 18}, place{start: 270, n: 3}))
}

// Largest27B are the 27B's widest rows, in slices of its matrices.
func Largest27B() []Operation {
	return []Operation{
		norm(1, 5120, 0, false), linear(1, Affine(24, 17408, 4, 64, bf16)), linear(9, Affine(33, 17408, 4, 64, bf16)), linear(1, Affine(17, 5120, 8, 64, bf16)),
		swiglu(1, 17408), convolving(10240, 2), delta(StateOf(16, 48, 128, 128), 2), gatedNorm(1, 48, 128), attending(24, 4, 256, 32, place{start: 300, n: 2}),
	}
}

// Few is one operation of every kernel file, at a shape with ragged edges.
func Few() []Operation {
	return []Operation{
		embedding(Affine(5, 64, 4, 32, f16)), norm(3, 257, 0, true), linear(3, Affine(33, 544, 4, 32, bf16)), linear(33, Affine(33, 96, 8, 32, f16)),
		linear(3, Affine(33, 64, 5, 32, f16)), linear(2, Shape{out: 9, in: 132, format: bf16}), linear(34, Shape{out: 33, in: 64, format: f16}),
		swiglu(3, 100), gathering(4, 33), rotating(200, 3, 8), convolving(67, 5, 2), delta(StateOf(2, 6, 32, 33), 5, 2), delta(StateOf(1, 2, 128, 7), 3), gatedNorm(3, 3, 33),
		attending(2, 1, 64, 8, place{start: 31, n: 3}, place{start: 250, n: 17}), attending(2, 1, 256, 8, place{start: 3, n: 17, policy: near}),
	}
}
