package devicetest

import (
	"math"
	"testing"

	"slipway/engine/device"
)

func (s *suite) rotation(t *testing.T) {
	inverse := []float64{1, math.Pow(1e7, -0.25), math.Pow(1e7, -0.5), math.Pow(1e7, -0.75)}
	segments := []device.Segment{{N: 2, Start: 262142}, {Row: 2, N: 3}}
	dst := s.buffer(t, 5, 8, nil)
	s.run(t, segments, func(p device.Pass) { p.Rotation(dst, inverse) })
	var want []float64
	for _, position := range []float64{262142, 262143, 0, 1, 2} {
		for _, f := range inverse {
			want = append(want, math.Cos(position*f))
		}
		for _, f := range inverse {
			want = append(want, math.Sin(position*f))
		}
	}
	s.rows(t, "table", dst.Floats(), want, 8)
}

// attended is the plain memory of a sequence: keys after norm and rotation, and values, [positions, Hkv·D].
type attended struct{ keys, values []float64 }

func (s *suite) attention(t *testing.T) {
	for _, shape := range []struct{ heads, kvHeads, dim, rotary int }{{4, 2, 64, 16}, {6, 1, 16, 8}, {6, 2, 256, 64}} {
		t.Run(label(shape.heads, " heads, ", shape.kvHeads, " of keys, dim ", shape.dim), func(t *testing.T) {
			s.attentionShape(t, shape.heads, shape.kvHeads, shape.dim, shape.rotary)
		})
	}
}

func (s *suite) attentionShape(t *testing.T, heads, kvHeads, dim, rotary int) {
	pool, err := s.dev.KV(device.KVGeometry{Layers: 2, Heads: kvHeads, HeadDim: dim, Pages: 8})
	if err != nil {
		t.Fatal(err)
	}
	const eps = 1e-6
	tables := [][]int32{{5, 0, 7}, {2, 6}} // page numbers in no order
	inverse := make([]float64, rotary/2)
	for i := range inverse {
		inverse[i] = math.Pow(1e6, -2*float64(i)/float64(rotary))
	}
	qw, kw := s.random(dim), s.random(dim)
	qNorm, kNorm := s.vector(t, qw), s.vector(t, kw)
	memory := make([]attended, 2)
	starts := []int{0, 0}
	// Page borders are crossed inside a segment, hit exactly, and passed one row at a time; the third pass is masked
	// for the first sequence's rows below 300 (sink and window apart), the fourth with both meeting.
	for pass, lengths := range [][]int{{255, 1}, {2, 40}, {60, 215}, {90, 1}, {1, 2}} {
		rows := sum(lengths)
		segments := lay(lengths, starts, []device.State{nil, nil})
		for i := range segments {
			segments[i].Pages = tables[i]
		}
		switch pass {
		case 2:
			segments[0].Policy = device.AttentionPolicy{Sink: 64, Window: 20, DenseFrom: 300}
		case 3:
			segments[0].Policy = device.AttentionPolicy{Sink: 300, Window: 30, DenseFrom: 380}
		}
		qGate, k, v := s.random(rows*heads*2*dim), s.random(rows*kvHeads*dim), s.random(rows*kvHeads*dim)
		dst, q, table, gate := s.buffer(t, rows, heads*dim, nil), s.buffer(t, rows, heads*dim, nil),
			s.buffer(t, rows, rotary, nil), s.buffer(t, rows, heads*2*dim, qGate)
		s.run(t, segments, func(p device.Pass) {
			p.Rotation(table, inverse)
			p.AttentionInput(device.AttentionInput{Q: q, QGate: gate, K: s.buffer(t, rows, kvHeads*dim, k),
				V: s.buffer(t, rows, kvHeads*dim, v), QNorm: qNorm, KNorm: kNorm, Rotation: table, KV: pool, Layer: 1,
				Eps: eps})
			p.Attention(device.Attention{Dst: dst, Q: q, QGate: gate, KV: pool, Layer: 1})
		})
		head := func(x, w []float32, position int) []float64 {
			var total float64
			for _, v := range x {
				total += float64(v) * float64(v)
			}
			out := make([]float64, dim)
			for i, v := range x {
				out[i] = float64(v) / math.Sqrt(total/float64(dim)+eps) * float64(w[i])
			}
			for i, f := range inverse {
				sin, cos := math.Sincos(float64(position) * f)
				a, b := out[i], out[i+len(inverse)]
				out[i], out[i+len(inverse)] = a*cos-b*sin, b*cos+a*sin
			}
			return out
		}
		var want []float64
		for i, seg := range segments {
			m := &memory[i]
			for r := range seg.N {
				row, position := seg.Row+r, seg.Start+r
				for h := range kvHeads {
					m.keys = append(m.keys, head(k[(row*kvHeads+h)*dim:][:dim], kw, position)...)
					for _, x := range v[(row*kvHeads+h)*dim:][:dim] {
						m.values = append(m.values, float64(x))
					}
				}
				for h := range heads {
					query := head(qGate[(row*heads+h)*2*dim:][:dim], qw, position)
					out := m.attend(query, position, h/(heads/kvHeads), kvHeads, seg.Policy)
					for d, g := range qGate[(row*heads+h)*2*dim+dim:][:dim] {
						want = append(want, out[d]*sigmoid(float64(g)))
					}
				}
			}
			starts[i] += seg.N
		}
		s.rows(t, label("pass ", pass), dst.Floats(), want, heads*dim)
	}
	for i, m := range memory {
		width := kvHeads * dim
		keys, values := make([]float32, width), make([]float32, width)
		for p := range len(m.keys) / width {
			pool.Read(keys, values, 1, tables[i][p/device.PageTokens], p%device.PageTokens)
			s.rows(t, "stored keys", keys, m.keys[p*width:(p+1)*width], width)
			s.rows(t, "stored values", values, m.values[p*width:(p+1)*width], width)
		}
	}
}

// attend is softmax(q·K/√d)·V over what position sees under the policy.
func (m *attended) attend(q []float64, position, kvHead, kvHeads int, policy device.AttentionPolicy) []float64 {
	dim := len(q)
	out := make([]float64, dim)
	var total float64
	for p := range position + 1 {
		if policy.Window > 0 && position < policy.DenseFrom && p >= policy.Sink && p <= position-policy.Window {
			continue
		}
		at := (p*kvHeads + kvHead) * dim
		var score float64
		for d, v := range q {
			score += v * m.keys[at+d]
		}
		weight := math.Exp(score / math.Sqrt(float64(dim)))
		total += weight
		for d := range out {
			out[d] += weight * m.values[at+d]
		}
	}
	for d := range out {
		out[d] /= total
	}
	return out
}

func (s *suite) memory(t *testing.T) {
	g := device.StateGeometry{Layers: 2, KeyHeads: 1, ValueHeads: 2, KeyDim: 8, ValueDim: 8, ConvChannels: 32,
		ConvTaps: 4}
	a, b := s.state(t, g), s.state(t, g)
	dst, x, w := s.buffer(t, 2, 32, nil), s.buffer(t, 2, 32, s.random(64)), s.vector(t, s.random(128))
	s.run(t, []device.Segment{{N: 2, State: a}}, func(p device.Pass) {
		p.Conv(device.Conv{Dst: dst, X: x, Weight: w, Layer: 1})
	})
	read := func(st device.State) []float32 {
		matrices, tail := make([]float32, 2*64), make([]float32, 3*32)
		st.Read(matrices, tail, 1)
		return append(matrices, tail...)
	}
	b.Copy(a)
	equalBits(t, "copy", read(b), read(a))
	before := read(a)
	b.Reset()
	equalBits(t, "reset", read(b), make([]float32, len(before)))
	equalBits(t, "the original after a reset of its copy", read(a), before)

	pool, err := s.dev.KV(device.KVGeometry{Layers: 1, Heads: 1, HeadDim: 16, Pages: 3})
	if err != nil {
		t.Fatal(err)
	}
	ones := make([]float32, 16)
	for i := range ones {
		ones[i] = 1
	}
	norm := s.vector(t, ones)
	table := s.buffer(t, 1, 8, nil)
	s.run(t, []device.Segment{{N: 1, Start: 9, Pages: []int32{2}}}, func(p device.Pass) {
		p.Rotation(table, []float64{1, 0.1, 0.01, 0.001})
		p.AttentionInput(device.AttentionInput{Q: s.buffer(t, 1, 16, nil), QGate: s.buffer(t, 1, 32, s.random(32)),
			K: s.buffer(t, 1, 16, s.random(16)), V: s.buffer(t, 1, 16, s.random(16)), QNorm: norm, KNorm: norm,
			Rotation: table, KV: pool, Eps: 1e-6})
	})
	at := func(page int32) []float32 {
		k, v := make([]float32, 16), make([]float32, 16)
		pool.Read(k, v, 0, page, 9)
		return append(k, v...)
	}
	pool.CopyPage(0, 2)
	equalBits(t, "copied page", at(0), at(2))
	equalBits(t, "untouched page", at(1), make([]float32, 32))
	if pool.Bytes() <= 0 || a.Bytes() <= 0 {
		t.Error("memory that takes no bytes")
	}
}
