//go:build unix

package metal_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"slipway/engine/device"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

var nan = float32(math.NaN())

// spoiled is an operation that is recorded with a NaN in its input, or without.
type spoiled struct {
	name  string
	run   func(w *selftest.World, spoil bool) [][]float32
	feels func(row int) bool // rows that may change: all others keep their bits
	at    int                // the column in which those rows are NaN
}

// spoiling reaches each kernel that reads numbers (TestEveryKernelRunsAtItsEdges).
var spoiling = []spoiled{
	{"norm", func(w *selftest.World, spoil bool) [][]float32 {
		x, weight, dst := w.Buffer(12, 64), w.Vector(64), w.Output(12, 64)
		spoilRow(x, 5, spoil)
		w.Run(selftest.Stateless(12), func(p device.Pass) { p.RMSNorm(dst, x, weight, 1e-6, 12, 0) })
		return selftest.Rows(dst)
	}, only(5), 0},
	spoiltLinear(7, selftest.Affine(33, 64, 4, 32, device.FormatF16)),
	spoiltLinear(7, selftest.Affine(33, 64, 4, 64, device.FormatF16)),
	spoiltLinear(40, selftest.Affine(33, 64, 4, 32, device.FormatF16)),
	spoiltLinear(7, selftest.Dense(33, 64, device.FormatF16)),
	spoiltLinear(40, selftest.Dense(33, 64, device.FormatF16)),
	{"swiglu", func(w *selftest.World, spoil bool) [][]float32 {
		gate, up := w.Buffer(12, 33), w.Buffer(12, 33)
		spoilRow(up, 5, spoil)
		w.Run(selftest.Stateless(12), func(p device.Pass) { p.SwiGLU(gate, gate, up, 12) })
		return selftest.Rows(gate)
	}, only(5), 1},
	{"gather", func(w *selftest.World, spoil bool) [][]float32 {
		src, dst := w.Buffer(9, 33), w.Output(4, 33)
		spoilRow(src, 5, spoil)
		w.Run(selftest.Stateless(9), func(p device.Pass) { p.Gather(dst, src, []int32{4, 6, 5, 0}) })
		return selftest.Rows(dst)
	}, only(2), 1},
	{"the largest", func(w *selftest.World, spoil bool) [][]float32 { // none of a row with what is no number
		src, values, ids := w.Buffer(3, 300), w.Output(3, 4), w.Output(3, 4)
		spoilRow(src, 1, spoil)
		w.Run(selftest.Stateless(3), func(p device.Pass) { p.TopK(values, ids, src, 3) })
		return append(selftest.Rows(values), selftest.Rows(ids)[0], selftest.Rows(ids)[2])
	}, only(1), 0},
	spoiltEmbedding("affine", device.MatrixData{Format: device.FormatAffine, Bits: 4, Group: 32,
		ScaleFormat: device.FormatF32}),
	spoiltEmbedding("dense", device.MatrixData{Format: device.FormatF32}),
	{"convolution", func(w *selftest.World, spoil bool) [][]float32 {
		g := selftest.StateOf(1, 1, 1, 98)
		segments, n := w.SegmentsOf(g, 9, 4)
		x, dst, weight := w.Buffer(n, 100), w.Output(n, 100), w.Vector(400)
		spoilRow(x, 3, spoil)
		w.Run(segments, func(p device.Pass) { p.Conv(device.Conv{Dst: dst, X: x, Weight: weight, Layer: 1}) })
		return selftest.States(selftest.Rows(dst), segments, 1)
	}, func(row int) bool { return row >= 3 && row < 7 }, 1}, // four taps
	{"delta rule, few tokens", func(w *selftest.World, spoil bool) [][]float32 {
		rows := spoiltDelta(w, 9, 4, 64+5, spoil)
		rows[13] = rows[13][5*32:] // of the first sequence's state, from the row with the value
		return rows
	}, func(row int) bool { return row >= 4 && row < 9 || row == 13 }, 5},
	{"gated norm", func(w *selftest.World, spoil bool) (heads [][]float32) {
		o, z, weight := w.Buffer(12, 99), w.Buffer(12, 99), w.Vector(33)
		spoilRow(o, 5, spoil)
		w.Run(selftest.Stateless(12), func(p device.Pass) {
			p.GatedNorm(device.GatedNorm{Dst: o, O: o, Z: z, Weight: weight, HeadDim: 33, Eps: 1e-6})
		})
		for _, row := range selftest.Rows(o) {
			heads = append(heads, row[:33], row[33:66], row[66:])
		}
		return heads
	}, only(15), 0},
	{"queries and keys", func(w *selftest.World, spoil bool) (rows [][]float32) {
		const n, dim = 12, 64
		kv := pagesOf(w, dim, device.KVNative)
		qGate, k, v, table := w.Buffer(n, 4*dim), w.Buffer(n, dim), w.Buffer(n, dim), w.Output(n, 8)
		q, qNorm, kNorm := w.Output(n, 2*dim), w.Vector(dim), w.Vector(dim)
		spoilRow(k, 5, spoil)
		spoilRow(qGate, 7, spoil)
		w.Run([]device.Segment{{N: n, Pages: []int32{1}}}, func(p device.Pass) {
			p.Rotation(table, []float64{1, 0.1, 0.01, 0.001})
			p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: qNorm, KNorm: kNorm,
				Rotation: table, KV: kv, Eps: 1e-6})
		})
		for i := range n {
			keys, values := make([]float32, dim), make([]float32, dim)
			kv.Read(keys, values, 0, 1, i)
			rows = append(rows, keys, values, selftest.Rows(q)[i][:dim], selftest.Rows(q)[i][dim:])
		}
		return rows
	}, func(row int) bool { return row == 4*5 || row == 4*7+2 }, 0},
}

func only(row int) func(int) bool { return func(i int) bool { return i == row } }

func spoilRow(x device.Buffer, row int, spoil bool) {
	if spoil {
		x.Floats()[row*x.Cols()+1] = nan
	}
}

func spoiltLinear(n int, s selftest.Shape) spoiled {
	return spoiled{fmt.Sprintf("linear of %d rows of %v", n, s), func(w *selftest.World, spoil bool) [][]float32 {
		x, m, dst := w.Buffer(n, 64), w.Matrix(s), w.Output(n, 33)
		spoilRow(x, 5, spoil)
		w.Run(selftest.Stateless(n), func(p device.Pass) { p.Linear(x, []device.Product{{W: m, Dst: dst}}, n) })
		return selftest.Rows(dst)
	}, only(5), 0}
}

// spoiltEmbedding looks up a table of 4 rows of 64, whose third has a NaN.
func spoiltEmbedding(name string, m device.MatrixData) spoiled {
	return spoiled{"embedding, " + name, func(w *selftest.World, spoil bool) [][]float32 {
		m.Name, m.Out, m.In = "table", 4, 64
		to := &m.Data
		if m.Format == device.FormatAffine {
			m.Data, m.Biases, to = make([]byte, 4*64*4/8), w.FloatBytes(8, device.FormatF32, 0, 1), &m.Scales
			*to = w.FloatBytes(8, device.FormatF32, 0, 1)
		} else {
			*to = w.FloatBytes(4*64, device.FormatF32, 0, 1)
		}
		if spoil {
			binary.LittleEndian.PutUint32((*to)[len(*to)/2:], math.Float32bits(nan))
		}
		table, err := w.Device.Matrix(m)
		if err != nil {
			panic(err)
		}
		dst := w.Output(5, 64)
		w.Run(selftest.Stateless(5), func(p device.Pass) { p.Embed(dst, table, []int32{0, 1, 3, 2, 1}) })
		return selftest.Rows(dst)
	}, only(3), 0}
}

func pagesOf(w *selftest.World, dim int, format device.KVFormat) device.KV {
	kv, err := w.Device.KV(device.KVGeometry{Layers: 1, Heads: 1, HeadDim: dim, Pages: 2, Format: format})
	if err != nil {
		panic(err)
	}
	return kv
}

// A NaN in one row of the input may reach that row and, where rows see earlier ones, later rows of its segment, and
// nothing else.
func TestNaNStaysInItsRows(t *testing.T) {
	for _, c := range spoiling {
		for kind, d := range metals(t, fake.Configuration{Seed: 3}) {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				clean, dirty := c.run(newWorld(t, d, 1), false), c.run(newWorld(t, d, 1), true)
				for i := range clean {
					if !c.feels(i) && differ(dirty[i:i+1], clean[i:i+1], 0) != "" {
						t.Errorf("row %d changed", i)
					}
					if c.feels(i) && !math.IsNaN(float64(dirty[i][c.at])) {
						t.Errorf("row %d has no NaN", i)
					}
				}
			})
		}
	}
}

// spoiltAttention runs a prompt of two sequences of 20 tokens, the first with a NaN among the values of its tenth
// token, and then three tokens of each.
func spoiltAttention(w *selftest.World, format device.KVFormat, spoil bool) [][]float32 {
	const n, spoilt, dim = 20, 9, 64
	kv := pagesOf(w, dim, format)
	qGate, k, v, table := w.Buffer(2*n, 4*dim), w.Buffer(2*n, dim), w.Buffer(2*n, dim), w.Output(2*n, 8)
	v2 := w.Buffer(1, dim)
	q, dst, qNorm, kNorm := w.Output(2*n, 2*dim), w.Output(2*n, 2*dim), w.Vector(dim), w.Vector(dim)
	spoilRow(v, spoilt, spoil)
	segments := []device.Segment{{N: n, Pages: []int32{0}}, {Row: n, N: n, Pages: []int32{1}}}
	w.Run(segments, func(p device.Pass) {
		p.Rotation(table, []float64{1, 0.1, 0.01, 0.001})
		p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: qNorm, KNorm: kNorm,
			Rotation: table, KV: kv, Eps: 1e-6})
		p.Attention(device.Attention{Dst: dst, Q: q, QGate: qGate, KV: kv})
	})
	out := selftest.Rows(dst)
	// The next tokens, three of the spoilt sequence and three of the other, use another kernel than the prompt.
	for row, n := range []int{n, n} {
		for i := range 3 {
			one := []device.Segment{{N: 1, Start: n + i, Pages: []int32{int32(row)}}}
			w.Run(one, func(p device.Pass) {
				p.Rotation(table, []float64{1, 0.1, 0.01, 0.001})
				p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: v2, V: v2, QNorm: qNorm, KNorm: kNorm,
					Rotation: table, KV: kv, Eps: 1e-6})
				p.Attention(device.Attention{Dst: dst, Q: q, QGate: qGate, KV: kv})
			})
			out = append(out, selftest.Rows(dst)[0])
		}
	}
	return out
}

// Key and value rows with a NaN: rows before them in the same tile do not see it, other segments never do.
func TestNaNKeyReachesNoEarlierRow(t *testing.T) {
	const n, spoilt = 20, 9
	for kind, d := range metals(t, fake.Configuration{Seed: 3}) {
		for _, format := range []device.KVFormat{device.KVNative, device.KVQ8} {
			t.Run(fmt.Sprint(kind, ", pages of format ", format), func(t *testing.T) {
				clean, dirty := spoiltAttention(newWorld(t, d, 1), format, false),
					spoiltAttention(newWorld(t, d, 1), format, true)
				for i := range clean {
					sees := i >= spoilt && i < n || i >= 2*n && i < 2*n+3
					if !sees && differ(dirty[i:i+1], clean[i:i+1], 0) != "" {
						t.Errorf("row %d changed", i)
					}
					if sees && !math.IsNaN(float64(dirty[i][1])) {
						t.Errorf("row %d sees the key and has no NaN", i)
					}
				}
			})
		}
	}
}

// spoiltDelta advances two sequences, of n tokens and of 20 (4 beside fewer than 17), by two value heads of 16 over one
// key head of 32.
func spoiltDelta(w *selftest.World, n, spoilt, column int, spoil bool) [][]float32 {
	g, other := selftest.StateOf(1, 2, 32, 16), 20
	if n <= device.TapeSegment {
		other = 4
	}
	segments, total := w.SegmentsOf(g, n, other)
	qkv, a, b, aLog := w.Buffer(total, g.ConvChannels), w.Buffer(total, 2), w.Buffer(total, 2), w.Vector(2)
	dst := w.Output(total, 32)
	if spoil {
		qkv.Floats()[spoilt*g.ConvChannels+column] = nan
	}
	w.Run(segments, func(p device.Pass) {
		p.DeltaRule(device.DeltaRule{Dst: dst, QKV: qkv, A: a, B: b, ALog: aLog, DTBias: aLog, Layer: 1})
	})
	return selftest.States(selftest.Rows(dst), segments, 1)
}

// A NaN in one token of a prompt reaches the outputs of that token and of later ones, in each head that reads it, and
// nothing else.
func TestNaNTokenReachesNoEarlierToken(t *testing.T) {
	const n, spoilt = 45, 21 // the second chunk of 16
	for kind, d := range metals(t, fake.Configuration{Seed: 3}) {
		for name, column := range map[string]int{"query": 3, "key": 35, "value": 64 + 16 + 5} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				clean, dirty := spoiltDelta(newWorld(t, d, 1), n, spoilt, column, false),
					spoiltDelta(newWorld(t, d, 1), n, spoilt, column, true)
				for i := range n + 20 {
					feels := i == spoilt || i > spoilt && i < n && name != "query"
					if !feels && differ(dirty[i:i+1], clean[i:i+1], 0) != "" {
						t.Errorf("row %d changed", i)
					}
					at := 5 // of the first value head, or of the second
					if name == "value" {
						at = 16 + 5
					}
					if feels && !math.IsNaN(float64(dirty[i][at])) {
						t.Errorf("row %d has no NaN: %v", i, dirty[i][at])
					}
				}
				if got := math.IsNaN(float64(dirty[n+20][(16+5)*32])); got != (name != "query") {
					t.Errorf("the state holds a NaN: %v", got)
				}
				if what := differ(dirty[n+22:], clean[n+22:], 0); what != "" {
					t.Errorf("the other sequence's state: %s", what)
				}
			})
		}
	}
}
