//go:build unix

package metal_test

import (
	"bytes"
	"testing"

	"slipway/engine/device"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

// taped is a sequence of one state that decodes random rows and keeps the state after each.
type taped struct {
	t     *testing.T
	w     *selftest.World
	state device.State
	after [][]byte // by tokens
}

// step runs convolution and recurrence over n tokens. Only the state after the last is known.
func (s *taped) step(n int) {
	s.t.Helper()
	g := s.state.Geometry()
	qkv, conv, a, b := s.w.Buffer(n, g.ConvChannels), s.w.Output(n, g.ConvChannels), s.w.Buffer(n, g.ValueHeads),
		s.w.Buffer(n, g.ValueHeads)
	dst, weight, aLog := s.w.Output(n, g.ValueHeads*g.ValueDim), s.w.Vector(4*g.ConvChannels), s.w.Vector(g.ValueHeads)
	err := s.w.Pass([]device.Segment{{N: n, Start: len(s.after), State: s.state}}, func(p device.Pass) {
		for l := range g.Layers {
			p.Conv(device.Conv{Dst: conv, X: qkv, Weight: weight, Layer: l})
			p.DeltaRule(device.DeltaRule{Dst: dst, QKV: conv, A: a, B: b, ALog: aLog, DTBias: aLog, Layer: l})
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for range n - 1 {
		s.after = append(s.after, nil)
	}
	s.after = append(s.after, s.now())
}

func (s *taped) now() []byte {
	b := make([]byte, s.state.Bytes())
	s.state.ReadAll(b)
	return b
}

func newTaped(t *testing.T, d device.Device, keep int) *taped {
	t.Helper()
	w := newWorld(t, d, 5)
	st, err := d.State(selftest.StateOf(2, 4, 32, 9))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Release)
	s := &taped{t: t, w: w, state: st}
	s.after = append(s.after, s.now())
	if err := s.state.Record(keep); err != nil {
		t.Fatal(err)
	}
	return s
}

// rewind rewinds n tokens and checks the bits.
func (s *taped) rewind(n int) {
	s.t.Helper()
	s.state.Rewind(n)
	s.after = s.after[:len(s.after)-n]
	if want := s.after[len(s.after)-1]; want != nil && !bytes.Equal(s.now(), want) {
		s.t.Fatalf("after a rewind of %d tokens the state differs", n)
	}
}

func TestStateRewindsToTheSameBits(t *testing.T) {
	for kind, d := range metals(t, fake.Configuration{Seed: 8, DelayMicros: 50}) {
		t.Run(kind, func(t *testing.T) {
			s := newTaped(t, d, 5)
			s.step(40) // a prefill: it cannot be rewound
			if n := s.state.TapeLen(); n != 0 {
				t.Fatalf("%d tokens of a prefill on the tape", n)
			}
			s.step(3)
			s.step(1)
			s.rewind(1)
			s.rewind(3)
			for i := range 90 { // the base moves more than once
				s.step(1 + i%3)
				if n := s.state.TapeLen(); i > 5 && n < 5 {
					t.Fatalf("only %d tokens can be rewound", n)
				}
			}
			for s.state.TapeLen() > 3 {
				s.rewind(2)
			}
			s.step(2)

			base, tape, err := s.state.CutTape()
			if err != nil || tape.Len() != s.state.TapeLen() {
				t.Fatalf("%v, a tape of %d", err, tape.Len())
			}
			defer base.Release()
			defer tape.Release()
			checked := 0
			for n := range tape.Len() + 1 {
				want := s.after[len(s.after)-1-(tape.Len()-n)]
				if want == nil {
					continue // inside a segment
				}
				other := newTaped(t, d, 1)
				other.state.Copy(base)
				other.state.Replay(tape, n)
				if !bytes.Equal(other.now(), want) {
					t.Errorf("a replay of %d of %d tokens gives other bits", n, tape.Len())
				}
				checked++
			}
			if checked < 2 {
				t.Errorf("only %d replays were compared", checked)
			}
			s.step(device.TapeSegment + 1)
			if s.state.TapeLen() != 0 {
				t.Error("a prefill is on the tape")
			}
			s.step(1)
			s.state.Reset()
			if s.state.TapeLen() != 0 {
				t.Error("a reset leaves a tape")
			}
		})
	}
}

func TestFailedReplayFailsTheNextPass(t *testing.T) {
	d := metals(t, fake.Configuration{})["fast"]
	s := newTaped(t, d, 5)
	s.step(2)
	s.step(1)
	fake.Configure(fake.Configuration{FailCommit: 1})
	s.state.Rewind(1)
	w := s.w
	x := w.Buffer(1, s.state.Geometry().ConvChannels)
	weight := w.Vector(4 * s.state.Geometry().ConvChannels)
	err := w.Pass([]device.Segment{{N: 1, State: s.state}}, func(p device.Pass) {
		p.Conv(device.Conv{Dst: x, X: x, Weight: weight})
	})
	if err == nil {
		t.Fatal("a pass runs over a state whose replay failed")
	}
	s.state.Reset()
	if s.after = [][]byte{s.now()}; len(bytes.Trim(s.after[0], "\x00")) > 0 {
		t.Fatal("a reset state is not zero")
	}
	s.step(1)
}
