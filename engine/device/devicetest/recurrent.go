package devicetest

import (
	"math"
	"testing"

	"slipway/engine/device"
)

func (s *suite) state(t *testing.T, g device.StateGeometry) device.State {
	t.Helper()
	st, err := s.dev.State(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Release)
	return st
}

// ragged are the lengths of the segments of successive passes over the same states: shorter than the taps, and longer
// than any tile.
var ragged = [][]int{{1, 5, 2}, {2, 1, 130}, {3, 64, 1}, {1, 1, 1}}

// lay makes the segments of a pass.
func lay(lengths []int, starts []int, states []device.State) []device.Segment {
	var out []device.Segment
	row := 0
	for i, n := range lengths {
		out = append(out, device.Segment{Row: row, N: n, Start: starts[i], State: states[i]})
		row += n
	}
	return out
}

func sum(x []int) int {
	total := 0
	for _, v := range x {
		total += v
	}
	return total
}

func (s *suite) conv(t *testing.T) {
	g := device.StateGeometry{Layers: 2, KeyHeads: 1, ValueHeads: 3, KeyDim: 8, ValueDim: 8, ConvChannels: 40,
		ConvTaps: 4}
	w := s.random(4 * g.ConvChannels)
	weight := s.vector(t, w)
	states := []device.State{s.state(t, g), s.state(t, g), s.state(t, g)}
	history := make([][]float32, 3) // every row of a segment so far, zeros in front
	for i := range history {
		history[i] = make([]float32, 3*g.ConvChannels)
	}
	starts := []int{0, 0, 0}
	for pass, lengths := range ragged {
		rows := sum(lengths)
		x := s.random(rows * g.ConvChannels)
		dst := s.buffer(t, rows, g.ConvChannels, nil)
		segments := lay(lengths, starts, states)
		s.run(t, segments, func(p device.Pass) {
			p.Conv(device.Conv{Dst: dst, X: s.buffer(t, rows, g.ConvChannels, x), Weight: weight, Layer: 1})
		})
		var want []float64
		for i, seg := range segments {
			history[i] = append(history[i], x[seg.Row*g.ConvChannels:(seg.Row+seg.N)*g.ConvChannels]...)
			first := len(history[i])/g.ConvChannels - seg.N - 3
			for r := range seg.N {
				for c := range g.ConvChannels {
					var y float64
					for j := range 4 {
						y += float64(w[j*g.ConvChannels+c]) * float64(history[i][(first+r+j)*g.ConvChannels+c])
					}
					want = append(want, silu(y))
				}
			}
			tail := make([]float32, 3*g.ConvChannels)
			states[i].Read(make([]float32, g.ValueHeads*64), tail, 1)
			equalBits(t, label("tail of segment ", i, " in pass ", pass), tail,
				history[i][len(history[i])-3*g.ConvChannels:])
			states[i].Read(make([]float32, g.ValueHeads*64), tail, 0)
			equalBits(t, "tail of the other layer", tail, make([]float32, len(tail)))
			starts[i] += seg.N
		}
		s.rows(t, label("pass ", pass), dst.Floats(), want, g.ConvChannels)
	}
}

func (s *suite) delta(t *testing.T) {
	for _, g := range []device.StateGeometry{
		{Layers: 2, KeyHeads: 2, ValueHeads: 6, KeyDim: 8, ValueDim: 16, ConvTaps: 4},
		{Layers: 1, KeyHeads: 1, ValueHeads: 3, KeyDim: 128, ValueDim: 128, ConvTaps: 4},
	} {
		g.ConvChannels = 2*g.KeyHeads*g.KeyDim + g.ValueHeads*g.ValueDim
		layer := g.Layers - 1
		aLog, dtBias := s.random(g.ValueHeads), s.random(g.ValueHeads)
		bLog, bBias := s.vector(t, aLog), s.vector(t, dtBias)
		states := []device.State{s.state(t, g), s.state(t, g), s.state(t, g)}
		size := g.ValueHeads * g.ValueDim * g.KeyDim
		reference := [][]float64{make([]float64, size), make([]float64, size), make([]float64, size)}
		for pass, lengths := range ragged {
			rows := sum(lengths)
			qkv, a, b := s.random(rows*g.ConvChannels), s.random(rows*g.ValueHeads), s.random(rows*g.ValueHeads)
			dst := s.buffer(t, rows, g.ValueHeads*g.ValueDim, nil)
			segments := lay(lengths, []int{0, 0, 0}, states)
			s.run(t, segments, func(p device.Pass) {
				p.DeltaRule(device.DeltaRule{Dst: dst, QKV: s.buffer(t, rows, g.ConvChannels, qkv),
					A: s.buffer(t, rows, g.ValueHeads, a), B: s.buffer(t, rows, g.ValueHeads, b), ALog: bLog,
					DTBias: bBias, Layer: layer})
			})
			var want []float64
			for i, seg := range segments {
				for r := seg.Row; r < seg.Row+seg.N; r++ {
					want = append(want, deltaStep(g, reference[i], qkv[r*g.ConvChannels:], a[r*g.ValueHeads:],
						b[r*g.ValueHeads:], aLog, dtBias)...)
				}
				got := make([]float32, size)
				states[i].Read(got, make([]float32, 3*g.ConvChannels), layer)
				s.rows(t, label("state of segment ", i, " in pass ", pass), got, reference[i], size)
			}
			s.rows(t, label("pass ", pass), dst.Floats(), want, g.ValueHeads*g.ValueDim)
		}
	}
}

// deltaStep is the formula of device.DeltaRule for one row.
func deltaStep(g device.StateGeometry, state []float64, qkv, a, b, aLog, dtBias []float32) []float64 {
	dk, dv := g.KeyDim, g.ValueDim
	unit := func(x []float32, scale float64) []float64 {
		var total float64
		for _, v := range x {
			total += float64(v) * float64(v)
		}
		out := make([]float64, len(x))
		for i, v := range x {
			out[i] = float64(v) / math.Sqrt(total+1e-6) * scale
		}
		return out
	}
	out := make([]float64, g.ValueHeads*dv)
	for h := range g.ValueHeads {
		key := h / (g.ValueHeads / g.KeyHeads)
		q := unit(qkv[key*dk:(key+1)*dk], 1/math.Sqrt(float64(dk)))
		k := unit(qkv[(g.KeyHeads+key)*dk:(g.KeyHeads+key+1)*dk], 1)
		v := qkv[2*g.KeyHeads*dk+h*dv:]
		alpha := math.Exp(-math.Exp(float64(aLog[h])) * math.Log1p(math.Exp(float64(a[h])+float64(dtBias[h]))))
		for i := range dv {
			row := state[(h*dv+i)*dk:][:dk]
			var m float64
			for j := range row {
				row[j] *= alpha
				m += row[j] * k[j]
			}
			delta := sigmoid(float64(b[h])) * (float64(v[i]) - m)
			for j := range row {
				row[j] += delta * k[j]
				out[h*dv+i] += row[j] * q[j]
			}
		}
	}
	return out
}
