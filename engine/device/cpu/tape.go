package cpu

import (
	"slices"

	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// tape holds one row for each token: per layer α [Hv] | β [Hv] | k [Hk·Dk] | v [Hv·Dv] | row before the convolution
// [channels].
type tape struct {
	g    device.StateGeometry
	rows [][]float32
}

func (t *tape) Len() int { return len(t.rows) }

func (t *tape) Bytes() int64 { return int64(len(t.rows)) * 4 * int64(t.g.Layers*layerFloats(t.g)) }

func (t *tape) Release() { t.rows = nil }

// layerFloats is the floats of one token in a layer.
func layerFloats(g device.StateGeometry) int {
	return 2*g.ValueHeads + g.KeyHeads*g.KeyDim + g.ValueHeads*g.ValueDim + g.ConvChannels
}

// entry is the row of one token in a layer, split into its parts.
type entry struct{ alpha, beta, k, v, u []float32 }

func entryOf(g device.StateGeometry, row []float32, layer int) entry {
	f := row[layer*layerFloats(g) : (layer+1)*layerFloats(g)]
	take := func(n int) []float32 {
		part := f[:n:n]
		f = f[n:]
		return part
	}
	return entry{take(g.ValueHeads), take(g.ValueHeads), take(g.KeyHeads * g.KeyDim), take(g.ValueHeads * g.ValueDim),
		take(g.ConvChannels)}
}

// recording is the tape of a state over its moving base.
type recording struct {
	keep int // tokens that can always be rewound
	tape tape
	free [][]float32 // rows to use again
	base *state
	live bool // base and tape together give the state
	at   int  // first row of the pass under way; -1 where it is not recorded
}

// slack is how many tokens are recorded before the base moves: moving it reads and writes the whole state once, as one
// token does.
const slack = 32

func (s *state) Record(tokens int) error {
	if tokens == 0 {
		s.rec = nil
		return nil
	}
	s.rec = &recording{keep: tokens, tape: tape{g: s.g}, base: &state{g: s.g, f: aligned(len(s.f))}}
	return nil
}

func (s *state) TapeLen() int {
	if s.rec == nil || !s.rec.live {
		return 0
	}
	return s.rec.tape.Len()
}

// forget empties the tape: something other than a recorded token changed the state.
func (s *state) forget() {
	if r := s.rec; r != nil {
		r.live = false
		r.free = append(r.free, r.tape.rows...)
		r.tape.rows = r.tape.rows[:0]
	}
}

// beginPass makes the rows that a segment of n tokens will write.
func (s *state) beginPass(n int) {
	r := s.rec
	if r == nil {
		return
	}
	if r.at = -1; n > device.TapeSegment {
		s.forget()
		return
	}
	if !r.live {
		s.forget()
		copy(r.base.f, s.f)
		r.live = true
	}
	if drop := r.tape.Len() + n - r.keep; drop >= slack {
		drop = min(drop, r.tape.Len())
		r.base.replay(&r.tape, 0, drop)
		r.free = append(r.free, r.tape.rows[:drop]...)
		r.tape.rows = slices.Delete(r.tape.rows, 0, drop)
	}
	r.at = r.tape.Len()
	for range n {
		var row []float32
		if last := len(r.free) - 1; last >= 0 {
			row, r.free = r.free[last], r.free[:last]
		} else {
			row = aligned(s.g.Layers * layerFloats(s.g))
		}
		r.tape.rows = append(r.tape.rows, row)
	}
}

// recorded is where row i of the segment goes, in a layer; ok is false where nothing is recorded.
func (s *state) recorded(layer, i int) (entry, bool) {
	if s.rec == nil || s.rec.at < 0 {
		return entry{}, false
	}
	return entryOf(s.g, s.rec.tape.rows[s.rec.at+i], layer), true
}

// replay advances the state by rows [from, to).
func (s *state) replay(t *tape, from, to int) {
	g := &s.g
	out := make([]float32, g.ValueDim)
	for l := range g.Layers {
		for h := range g.ValueHeads {
			matrix := s.head(l, h)
			key := h / (g.ValueHeads / g.KeyHeads)
			for _, row := range t.rows[from:to] {
				e := entryOf(*g, row, l)
				k := e.k[key*g.KeyDim : (key+1)*g.KeyDim]
				kernels.DeltaStep(matrix, e.alpha[h], e.beta[h], k, k, e.v[h*g.ValueDim:(h+1)*g.ValueDim], out)
			}
		}
		tail, channels := s.tail(l), g.ConvChannels
		for _, row := range t.rows[max(from, to-(g.ConvTaps-1)):to] {
			copy(tail, tail[channels:])
			copy(tail[len(tail)-channels:], entryOf(*g, row, l).u)
		}
	}
}

func (s *state) Rewind(n int) {
	if n < 0 || n > s.TapeLen() {
		panic("cpu: Rewind past the tape")
	}
	if n == 0 {
		return
	}
	r := s.rec
	left := r.tape.Len() - n
	copy(s.f, r.base.f)
	s.replay(&r.tape, 0, left)
	r.free = append(r.free, r.tape.rows[left:]...)
	r.tape.rows = r.tape.rows[:left]
}

func (s *state) CutTape() (device.State, device.Tape, error) {
	if s.TapeLen() == 0 {
		return nil, nil, nil
	}
	base := &state{g: s.g, f: aligned(len(s.f))}
	copy(base.f, s.rec.base.f)
	t := &tape{g: s.g}
	for _, row := range s.rec.tape.rows {
		t.rows = append(t.rows, slices.Clone(row))
	}
	return base, t, nil
}

func (s *state) Replay(from device.Tape, n int) {
	t := from.(*tape)
	if t.g != s.g || n < 0 || n > t.Len() {
		panic("cpu: Replay of a foreign tape, or past its end")
	}
	s.forget()
	s.replay(t, 0, n)
}
