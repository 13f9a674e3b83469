package selftest

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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

// bf16Times is how much more a product of bf16 operands may differ: they have three bits less than f16's.
const bf16Times = 8

// Stateless is a segment of n rows without state.
func Stateless(n int) []device.Segment { return []device.Segment{{N: n}} }

func embedding(n int, s Shape) Operation {
	return Operation{fmt.Sprintf("embed %d rows of %v", n, s), []string{"embed"}, 1e-6,
		sizes{"rows": {n}, "in": {s.in}}, func(w *World) [][]float32 {
			dst := w.Output(n, s.in)
			table := w.Matrix(s)
			tokens := make([]int32, n)
			for i := range tokens {
				tokens[i] = int32([]int{s.out - 1, 0, s.out / 2}[i%3])
			}
			w.Run(Stateless(n), func(p device.Pass) { p.Embed(dst, table, tokens) })
			return Rows(dst)
		}}
}

func norm(n, cols, column int, inPlace bool) Operation {
	return Operation{fmt.Sprintf("norm [%d,%d] at %d, in place %v", n, cols, column, inPlace), []string{"rms_norm"},
		ordered, sizes{"rows": {n}, "cols": {cols}}, func(w *World) [][]float32 {
			x, weight := w.Buffer(n, cols), w.Vector(cols)
			dst := x
			if !inPlace {
				dst = w.Buffer(n, cols+column+3)
			}
			w.Run(Stateless(n), func(p device.Pass) { p.RMSNorm(dst, x, weight, 1e-6, n, column) })
			return Rows(dst)
		}}
}

// productOf is the fast kernel files of a product of n rows, the one that is used first, and its tolerance.
func productOf(n int, s Shape) (files []string, tolerance float64) {
	switch {
	case n > 8:
		return []string{"linear_gemm"}, halved
	case n >= 3 && s.bits == 4 && s.group%64 == 0 && s.group > 0:
		return []string{"linear_rows", "linear_gemv"}, halved
	}
	return []string{"linear_gemv"}, ordered
}

// linear is two products of one input; one of them is added to the destination.
func linear(n int, s Shape) Operation {
	files, tolerance := productOf(n, s)
	return Operation{fmt.Sprintf("%d rows of %v", n, s), files, tolerance,
		sizes{"rows": {n}, "out": {s.out}, "in": {s.in}}, func(w *World) [][]float32 {
			x, a, b := w.Buffer(n, s.in), w.Matrix(s), w.Matrix(s)
			dst, sum := w.Output(n, s.out), w.Buffer(n, s.out)
			w.Run(Stateless(n), func(p device.Pass) {
				p.Linear(x, []device.Product{{W: a, Dst: dst}, {W: b, Dst: sum, Add: true}}, n)
			})
			return append(Rows(dst), Rows(sum)...)
		}}
}

// gating is gate, up and their SwiGLU as the model records them, beside products of other shapes and forms.
func gating(n int, s Shape) Operation {
	_, tolerance := productOf(n, s)
	files := []string{"linear_rows", "linear_gemv", "linear_gemm"}
	return Operation{fmt.Sprintf("gate and up, %d rows of %v", n, s), files, tolerance,
		sizes{"gated rows": {n}, "gated out": {s.out}}, func(w *World) [][]float32 {
			other, last := s, s
			other.out, last.out = s.out+9, 1
			x, a, b := w.Buffer(n, s.in), w.Matrix(s), w.Matrix(s)
			gate, up := w.Output(n, s.out), w.Output(n, s.out)
			products := []device.Product{{W: w.Matrix(other), Dst: w.Output(n, other.out)},
				{W: w.Matrix(Shape{out: 5, in: s.in, format: f16}), Dst: w.Output(n, 5)}}
			for range 4 { // more than go in one dispatch
				products = append(products, device.Product{W: w.Matrix(last), Dst: w.Output(n, 1)})
			}
			products = append(products, device.Product{W: a, Dst: w.Buffer(n, s.out), Add: true})
			w.Run(Stateless(n), func(p device.Pass) {
				p.Linear(x, []device.Product{{W: a, Dst: gate}, {W: b, Dst: up}}, n)
				p.SwiGLU(gate, gate, up, n)
				p.Linear(x, products, n)
			})
			out := append(Rows(gate), Rows(up)...)
			for _, p := range products {
				out = append(out, Rows(p.Dst)...)
			}
			return out
		}}
}

func swiglu(n, cols int) Operation {
	return Operation{fmt.Sprintf("swiglu [%d,%d]", n, cols), []string{"swiglu"}, ordered,
		sizes{"count": {n * cols}, "rows": {n}}, func(w *World) [][]float32 {
			gate, up := w.Buffer(n, cols), w.Buffer(n, cols)
			w.Run(Stateless(n), func(p device.Pass) { p.SwiGLU(gate, gate, up, n) })
			return Rows(gate)
		}}
}

func gathering(n, cols int) Operation {
	return Operation{fmt.Sprintf("gather %d of 9 rows of %d", n, cols), []string{"gather"}, 0,
		sizes{"rows": {n}, "cols": {cols}}, func(w *World) [][]float32 {
			src, dst := w.Buffer(9, cols), w.Output(n, cols)
			indices := make([]int32, n)
			for i := range indices {
				indices[i] = int32(i * 7 % 9)
			}
			w.Run(Stateless(9), func(p device.Pass) { p.Gather(dst, src, indices) })
			return Rows(dst)
		}}
}

// selecting chooses among values many of which are equal; the second of three rows and more has a NaN.
func selecting(n, cols, k int) Operation {
	file := "top_k"
	if k > 32 {
		file = "top_k_plain"
	}
	return Operation{fmt.Sprintf("the largest %d of [%d,%d]", k, n, cols), []string{file}, 0,
		sizes{"rows": {n}, "cols": {cols}, "k": {k}}, func(w *World) [][]float32 {
			src, values, ids := w.Buffer(n, cols), w.Output(n, k), w.Output(n, k)
			x := src.Floats()
			for i, v := range x {
				x[i] = float32(math.Round(float64(v)*8)) / 8
			}
			if n > 2 {
				x[cols+cols/2] = float32(math.NaN())
			}
			w.Run(Stateless(n), func(p device.Pass) { p.TopK(values, ids, src, n) })
			return append(Rows(values), Rows(ids)...)
		}}
}

func rotating(start, n, pairs int) Operation {
	return Operation{fmt.Sprintf("rotation of %d pairs from %d", pairs, start), []string{"rotation"}, 1e-6,
		sizes{"rows": {n}, "pairs": {pairs}}, func(w *World) [][]float32 {
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
	return device.StateGeometry{Layers: 2, KeyHeads: keyHeads, ValueHeads: valueHeads, KeyDim: dk, ValueDim: dv,
		ConvChannels: 2*keyHeads*dk + valueHeads*dv, ConvTaps: 4}
}

// convolving runs two passes, so that the second begins from the tails of the first.
func convolving(channels int, lengths ...int) Operation {
	return Operation{fmt.Sprintf("conv of %d channels over %v", channels, lengths), []string{"delta_input"}, ordered,
		sizes{"rows": lengths, "channels": {channels}}, func(w *World) [][]float32 {
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

// delta compares the outputs of a segment as one row: those of the first token are β(q·k)v, all as small as one sum
// that may cancel.
func delta(g device.StateGeometry, lengths ...int) Operation {
	return Operation{fmt.Sprintf("delta rule %d/%d heads, %d×%d, over %v", g.KeyHeads, g.ValueHeads, g.ValueDim,
		g.KeyDim, lengths), []string{"delta_chunk", "delta_step"}, ordered,
		sizes{"rows": lengths, "value dim": {g.ValueDim}}, func(w *World) [][]float32 {
			segments, n := w.SegmentsOf(g, lengths...)
			aLog, dtBias := w.Vector(g.ValueHeads), w.Vector(g.ValueHeads)
			dst := w.Output(n, g.ValueHeads*g.ValueDim)
			var out [][]float32
			for range 2 {
				qkv, a, b := w.Buffer(n, g.ConvChannels), w.Buffer(n, g.ValueHeads), w.Buffer(n, g.ValueHeads)
				w.Run(segments, func(p device.Pass) {
					p.DeltaRule(device.DeltaRule{Dst: dst, QKV: qkv, A: a, B: b, ALog: aLog, DTBias: dtBias, Layer: 1})
				})
				for _, s := range segments {
					out = append(out, slices.Concat(Rows(dst)[s.Row:s.Row+s.N]...))
				}
			}
			return States(out, segments, 1)
		}}
}

// small is o with values around a thousandth, whose squares are as large as the eps that a norm adds.
func small(o Operation) Operation {
	record := o.record
	o.Name += ", small values"
	o.record = func(w *World) [][]float32 {
		before := w.Scale
		w.Scale = 1e-3 * cmp.Or(before, 1)
		defer func() { w.Scale = before }()
		return record(w)
	}
	return o
}

func gatedNorm(n, heads, dim int) Operation {
	return Operation{fmt.Sprintf("gated norm of %d rows, %d heads of %d", n, heads, dim), []string{"gated_norm"},
		ordered, sizes{"rows": {n}, "heads": {n * heads}, "dim": {dim}}, func(w *World) [][]float32 {
			o, z, weight := w.Buffer(n, heads*dim), w.Buffer(n, heads*dim), w.Vector(dim)
			w.Run(Stateless(n), func(p device.Pass) {
				p.GatedNorm(device.GatedNorm{Dst: o, O: o, Z: z, Weight: weight, HeadDim: dim, Eps: 1e-6})
			})
			return Rows(o)
		}}
}

// context is the position of a segment in an attention test.
type place struct {
	start, n int
	policy   device.AttentionPolicy
}

func (p place) String() string {
	said := fmt.Sprintf("%d rows after %d tokens", p.n, p.start)
	if p.policy != (device.AttentionPolicy{}) {
		said += fmt.Sprintf(" seeing the first %d and the last %d, all from %d on", p.policy.Sink, p.policy.Window,
			p.policy.DenseFrom)
	}
	return said
}

// kvFormatNames are what pages of a format are called on Metal.
var kvFormatNames = map[device.KVFormat]string{device.KVNative: "f16", device.KVQ8: "q8"}

// attending fills the pages of every segment from position 0, in chunks, and compares queries, attention, and the keys
// and values of all positions. Pages are given out in an order of their own.
func attending(heads, kvHeads, dim, pairs int, places ...place) Operation {
	return attendingIn(device.KVNative, heads, kvHeads, dim, pairs, places...)
}

// attendingIn does so with pages of a format: what they hold is compared number by number, and attention over what the
// device's hold.
func attendingIn(format device.KVFormat, heads, kvHeads, dim, pairs int, places ...place) Operation {
	tolerance, files := ordered, []string{"attention_flash", "attention_decode", "attention_input"}
	if format == device.KVQ8 {
		tolerance, files = halved, append([]string{"attention_decode_q8"}, files...)
	}
	for _, s := range places {
		if s.n > 8 {
			tolerance = halved // a prefill's queries and weights are f16
		}
	}
	span := sizes{"heads": {heads}, "all heads": {heads + 2*kvHeads}, "dim": {dim}}
	for _, s := range places {
		span["rows"], span["keys"] = append(span["rows"], s.n), append(span["keys"], s.start+s.n)
	}
	at := make([]string, len(places))
	for i, s := range places {
		at[i] = s.String()
	}
	return Operation{fmt.Sprintf("attention in %s, %d/%d heads of %d: %s", kvFormatNames[format], heads, kvHeads, dim,
		strings.Join(at, ", ")), files, tolerance, span, func(w *World) [][]float32 {
		total, pages := 0, 0
		for _, s := range places {
			total += s.n
			pages += (s.start+s.n)/device.PageTokens + 1
		}
		kv, err := w.Device.KV(device.KVGeometry{Layers: 2, Heads: kvHeads, HeadDim: dim, Pages: pages + 1,
			Format: format})
		w.must(err)
		unwritten := bytes.Repeat([]byte{0xFF}, kv.PageBytes(device.PageTokens)) // NaN, which no query may see
		for page := range pages + 1 {
			kv.WritePage(int32(page), unwritten, device.PageTokens)
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
		for i, s := range places { // what came before, without asking for answers
			if s.start > 0 {
				k, v, qGate, table, q := w.Buffer(s.start, kvHeads*dim), w.Buffer(s.start, kvHeads*dim),
					w.Buffer(s.start, 2*heads*dim), w.Output(s.start, 2*pairs), w.Output(s.start, heads*dim)
				w.Run([]device.Segment{{N: s.start, Pages: tables[i]}}, func(p device.Pass) {
					p.Rotation(table, inverse)
					p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: qNorm, KNorm: kNorm,
						Rotation: table, KV: kv, Layer: 1, Eps: 1e-6})
				})
			}
		}
		var segments []device.Segment
		var filled []sequence
		at := 0
		for i, s := range places {
			segments = append(segments, device.Segment{Row: at, N: s.n, Start: s.start, Pages: tables[i],
				Policy: s.policy})
			filled = append(filled, sequence{tables[i], s.start + s.n})
			at += s.n
		}
		qGate, k, v, table := w.Buffer(total, 2*heads*dim), w.Buffer(total, kvHeads*dim), w.Buffer(total, kvHeads*dim),
			w.Output(total, 2*pairs)
		q, dst := w.Output(total, heads*dim), w.Output(total, heads*dim)
		input := func(p device.Pass) {
			p.Rotation(table, inverse)
			p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: qNorm, KNorm: kNorm,
				Rotation: table, KV: kv, Layer: 1, Eps: 1e-6})
		}
		attend := func(p device.Pass) { p.Attention(device.Attention{Dst: dst, Q: q, QGate: qGate, KV: kv, Layer: 1}) }
		if w.given != nil {
			w.Run(segments, input)
			if own := read(kv, 1, filled); format == device.KVQ8 {
				w.unlike = w.given.differFrom(own)
			} else {
				w.unlike = w.given.unitsFrom(own)
			}
			w.given.takeOver(kv.(writable), 1, filled)
			w.Run(segments, attend)
			return append(Rows(q), Rows(dst)...)
		}
		w.Run(segments, func(p device.Pass) { input(p); attend(p) })
		w.stored = read(kv, 1, filled)
		return append(Rows(q), Rows(dst)...)
	}}
}
