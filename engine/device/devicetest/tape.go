package devicetest

import (
	"bytes"
	"testing"

	"slipway/engine/device"
)

// stateBits reads a state whole: S and tail of every layer.
func stateBits(s device.State) []float32 {
	g := s.Geometry()
	var out []float32
	for l := range g.Layers {
		matrices, tail := make([]float32, g.ValueHeads*g.ValueDim*g.KeyDim),
			make([]float32, (g.ConvTaps-1)*g.ConvChannels)
		s.Read(matrices, tail, l)
		out = append(append(out, matrices...), tail...)
	}
	return out
}

// decode advances states by one row each, n times, through convolution and delta rule of every layer.
func (s *suite) decode(t *testing.T, g device.StateGeometry, states []device.State, n int, each func(step int)) {
	t.Helper()
	weight, aLog, dtBias := s.vector(t, s.random(4*g.ConvChannels)), s.vector(t, s.random(g.ValueHeads)),
		s.vector(t, s.random(g.ValueHeads))
	lengths, starts := make([]int, len(states)), make([]int, len(states))
	for i := range lengths {
		lengths[i] = 1
	}
	for step := range n {
		rows := len(states)
		s.run(t, lay(lengths, starts, states), func(p device.Pass) {
			for l := range g.Layers {
				qkv := s.buffer(t, rows, g.ConvChannels, nil)
				p.Conv(device.Conv{Dst: qkv, X: s.buffer(t, rows, g.ConvChannels, s.random(rows*g.ConvChannels)),
					Weight: weight, Layer: l})
				p.DeltaRule(device.DeltaRule{Dst: s.buffer(t, rows, g.ValueHeads*g.ValueDim, nil), QKV: qkv,
					A: s.buffer(t, rows, g.ValueHeads, s.random(rows*g.ValueHeads)),
					B: s.buffer(t, rows, g.ValueHeads, s.random(rows*g.ValueHeads)), ALog: aLog, DTBias: dtBias,
					Layer: l})
			}
		})
		each(step)
	}
}

// tape rewinds from many lengths by many lengths: the state has the bits of that time, and so has the replay of a tape
// that was cut out.
func (s *suite) tape(t *testing.T) {
	g := device.StateGeometry{Layers: 2, KeyHeads: 2, ValueHeads: 6, KeyDim: 8, ValueDim: 16, ConvTaps: 4}
	g.ConvChannels = 2*g.KeyHeads*g.KeyDim + g.ValueHeads*g.ValueDim
	first, second := s.state(t, g), s.state(t, g)
	const keep = 20
	for _, taped := range []device.State{first, second} {
		if err := taped.Record(keep); err != nil {
			t.Fatal(err)
		}
	}
	was := [][]float32{stateBits(first)}
	s.decode(t, g, []device.State{first, second}, 90, func(step int) {
		was = append(was, stateBits(first))
		if n := first.TapeLen(); n < min(step+1, keep) {
			t.Fatalf("after %d tokens %d can be rewound", step+1, n)
		}
		base, tape, err := first.CutTape()
		if err != nil {
			t.Fatal(err)
		}
		at := step + 1 - tape.Len()
		equalBits(t, label("base after ", step+1), stateBits(base), was[at])
		if tape.Bytes() <= 0 {
			t.Error("a tape of no bytes")
		}
		for _, n := range []int{0, 1, tape.Len() / 2, tape.Len()} {
			other := s.state(t, g)
			other.Copy(base)
			other.Replay(tape, n)
			equalBits(t, label("replay of ", n, " after ", step+1), stateBits(other), was[at+n])
		}
		tape.Release()
		base.Release()
	})
	for _, back := range []int{0, 1, 3, 16} {
		n := len(was) - back
		first.Rewind(back)
		equalBits(t, label("rewound ", back), stateBits(first), was[n-1])
		was = was[:n]
	}
	first.Copy(second)
	if first.TapeLen() != 0 {
		t.Error("a tape outlives a copy into its state")
	}
}

// transfer copies pages and states out and in again elsewhere.
func (s *suite) transfer(t *testing.T) {
	pool, err := s.dev.KV(device.KVGeometry{Layers: 2, Heads: 2, HeadDim: 16, Pages: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []int{1, 100, device.PageTokens} {
		whole, back := make([]byte, pool.PageBytes(tokens)), make([]byte, pool.PageBytes(tokens))
		for i := range whole {
			whole[i] = byte(s.r.IntN(256))
		}
		pool.WritePage(3, whole, tokens)
		pool.ReadPage(back, 3, tokens)
		if !bytes.Equal(back, whole) {
			t.Fatalf("%d positions differ after the round trip", tokens)
		}
		pool.CopyPage(1, 3)
		pool.ReadPage(back, 1, tokens)
		if !bytes.Equal(back, whole) {
			t.Fatalf("%d positions of a copied page differ", tokens)
		}
	}
	g := device.StateGeometry{Layers: 2, KeyHeads: 2, ValueHeads: 6, KeyDim: 8, ValueDim: 16, ConvTaps: 4,
		ConvChannels: 128}
	from := s.state(t, g)
	s.decode(t, g, []device.State{from}, 3, func(int) {})
	bits := make([]byte, from.Bytes())
	from.ReadAll(bits)
	to := s.state(t, g)
	to.WriteAll(bits)
	equalBits(t, "state", stateBits(to), stateBits(from))
}
