//go:build unix

package metal

import (
	"fmt"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// tape holds rows, one a token, in one buffer: per layer the convolution's outputs [slots, channels], its inputs
// [slots, channels], α [slots, Hv] and β [slots, Hv]. It implements device.Tape.
type tape struct {
	dev         *Device
	g           device.StateGeometry
	slots, rows int
	b           *mtl.Buffer
}

func (d *Device) newTape(g device.StateGeometry, slots int) (*tape, error) {
	t := &tape{dev: d, g: g, slots: slots}
	b, err := d.allocate(fmt.Sprintf("a tape of %d tokens", slots), 4*g.Layers*slots*tapeFloats(g))
	if err != nil {
		return nil, err
	}
	t.b = b
	return t, nil
}

// tapeFloats is the floats of one token in a layer.
func tapeFloats(g device.StateGeometry) int { return 2*g.ConvChannels + 2*g.ValueHeads }

func (t *tape) Len() int     { return t.rows }
func (t *tape) Bytes() int64 { return int64(t.b.Length) }
func (t *tape) Release()     { t.dev.free(t.b); t.rows = 0 }

// The offsets of the four parts of a layer from a row on, in floats.
func (t *tape) outputsAt(layer, row int) int {
	return layer*t.slots*tapeFloats(t.g) + row*t.g.ConvChannels
}
func (t *tape) inputsAt(layer, row int) int {
	return t.outputsAt(layer, 0) + (t.slots+row)*t.g.ConvChannels
}
func (t *tape) alphaAt(layer, row int) int {
	return t.outputsAt(layer, 0) + 2*t.slots*t.g.ConvChannels + row*t.g.ValueHeads
}
func (t *tape) betaAt(layer, row int) int {
	return t.alphaAt(layer, t.slots) + row*t.g.ValueHeads
}

// take copies n rows of from, beginning at row, to the first rows of t. The GPU is idle.
func (t *tape) take(from *tape, row, n int) {
	part := func(to, at, width int) { copy(floats(t.b, to, n*width), floats(from.b, at, n*width)) }
	for l := range t.g.Layers {
		part(t.outputsAt(l, 0), from.outputsAt(l, row), t.g.ConvChannels)
		part(t.inputsAt(l, 0), from.inputsAt(l, row), t.g.ConvChannels)
		part(t.alphaAt(l, 0), from.alphaAt(l, row), t.g.ValueHeads)
		part(t.betaAt(l, 0), from.betaAt(l, row), t.g.ValueHeads)
	}
	t.rows = n
}

// recording is the tape of a state over its moving base.
type recording struct {
	keep int // tokens that can always be rewound
	tape *tape
	base *state
	live bool // base and tape together give the state
	at   int  // first row of the pass under way; -1 where it is not recorded
}

// slack is how many tokens are recorded before the base moves: moving it reads and writes the whole state once, as one
// token does.
const slack = 32

func (s *state) Record(tokens int) error {
	if r := s.rec; r != nil {
		r.tape.Release()
		r.base.Release()
		s.rec = nil
	}
	if tokens == 0 {
		return nil
	}
	t, err := s.dev.newTape(s.g, tokens+slack+device.TapeSegment)
	if err != nil {
		return err
	}
	base, err := s.dev.State(s.g)
	if err != nil {
		t.Release()
		return err
	}
	s.rec = &recording{keep: tokens, tape: t, base: base.(*state)}
	return nil
}

func (s *state) TapeLen() int {
	if s.rec == nil || !s.rec.live {
		return 0
	}
	return s.rec.tape.rows
}

// forget empties the tape: something other than a recorded token changed the state.
func (s *state) forget() {
	if r := s.rec; r != nil {
		r.live, r.tape.rows = false, 0
	}
}

// beginPass makes room for the rows that a segment of n tokens will write.
func (s *state) beginPass(n int) error {
	r := s.rec
	if r == nil {
		return nil
	}
	if r.at = -1; n > device.TapeSegment {
		s.forget()
		return nil
	}
	if !r.live {
		s.forget()
		copy(r.base.b.Bytes, s.b.Bytes)
		r.live = true
	}
	if drop := r.tape.rows + n - r.keep; drop >= slack {
		drop = min(drop, r.tape.rows)
		if err := r.base.replay(r.tape, 0, drop); err != nil {
			return err
		}
		r.tape.take(r.tape, drop, r.tape.rows-drop)
	}
	r.at = r.tape.rows
	r.tape.rows += n
	return nil
}

// passBy is for a pass without the recurrence: it may change the convolution's tail, which no tape can rewind.
func (s *state) passBy() {
	if s.rec != nil {
		s.forget()
		s.rec.at = -1
	}
}

// replay advances the state by rows [from, to) of a tape, with the kernel that a pass uses.
func (s *state) replay(t *tape, from, to int) error {
	n := to - from
	if n == 0 {
		return nil
	}
	out, err := s.dev.allocate("the outputs of a replay", 4*n*s.g.ValueHeads*s.g.ValueDim)
	if err != nil {
		return err
	}
	defer s.dev.free(out)
	err = s.dev.runtime.Pool(func() error {
		var e encoder
		e.begin(s.dev)
		var err error
		for l := 0; l < s.g.Layers && err == nil; l++ {
			err = s.deltaStep(&e, l, n, use{out, 0, 1, write}, use{t.b, 4 * t.outputsAt(l, from), 2, read},
				use{t.b, 4 * t.alphaAt(l, from), 3, read}, use{t.b, 4 * t.betaAt(l, from), 4, read})
		}
		if err2 := e.finish(); err == nil {
			err = err2
		}
		return err
	})
	if err != nil {
		return err
	}
	channels := s.g.ConvChannels
	for l := range s.g.Layers {
		tail := floats(s.b, s.tailAt(l), s.tailFloats())
		for row := max(from, to-(s.g.ConvTaps-1)); row < to; row++ {
			copy(tail, tail[channels:])
			copy(tail[len(tail)-channels:], floats(t.b, t.inputsAt(l, row), channels))
		}
	}
	return nil
}

// Rewind returns no error: if the GPU fails, the next pass over the state fails.
func (s *state) Rewind(n int) {
	if n < 0 || n > s.TapeLen() {
		panic("metal: Rewind past the tape")
	}
	if n == 0 {
		return
	}
	r := s.rec
	left := r.tape.rows - n
	copy(s.b.Bytes, r.base.b.Bytes)
	s.broken = s.replay(r.tape, 0, left)
	r.tape.rows = left
}

func (s *state) CutTape() (device.State, device.Tape, error) {
	if s.TapeLen() == 0 {
		return nil, nil, nil
	}
	base, err := s.dev.State(s.g)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.dev.newTape(s.g, s.rec.tape.rows)
	if err != nil {
		base.Release()
		return nil, nil, err
	}
	copy(base.(*state).b.Bytes, s.rec.base.b.Bytes)
	t.take(s.rec.tape, 0, s.rec.tape.rows)
	return base, t, nil
}

// Replay returns no error: see Rewind.
func (s *state) Replay(from device.Tape, n int) {
	t := from.(*tape)
	if t.g != s.g || n < 0 || n > t.rows {
		panic("metal: Replay of a foreign tape, or past its end")
	}
	s.forget()
	s.broken = s.replay(t, 0, n)
}
