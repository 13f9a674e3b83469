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
		matrices, tail := make([]float32, g.ValueHeads*g.ValueDim*g.KeyDim), make([]float32, (g.ConvTaps-1)*g.ConvChannels)
		s.Read(matrices, tail, l)
		out = append(append(out, matrices...), tail...)
	}
	return out
}

// decode advances states by one row each, n times, through convolution and delta rule of every layer.
func (s *suite) decode(t *testing.T, g device.StateGeometry, states []device.State, n int, each func(step int)) {
	t.Helper()
	weight, aLog, dtBias := s.vector(t, s.random(4*g.ConvChannels)), s.vector(t, s.random(g.ValueHeads)), s.vector(t, s.random(g.ValueHeads))
	lengths, starts := make([]int, len(states)), make([]int, len(states))
	for i := range lengths {
		lengths[i] = 1
	}
	for step := range n {
		rows := len(states)
		s.run(t, lay(lengths, starts, states), func(p device.Pass) {
			for l := range g.Layers {
				qkv := s.buffer(t, rows, g.ConvChannels, nil)
				p.Conv(device.Conv{Dst: qkv, X: s.buffer(t, rows, g.ConvChannels, s.random(rows*g.ConvChannels)), Weight: weight, Layer: l})
				p.DeltaRule(device.DeltaRule{Dst: s.buffer(t, rows, g.ValueHeads*g.ValueDim, nil), QKV: qkv, A: s.buffer(t, rows, g.ValueHeads, s.random(rows*g.ValueHeads)),
					B: s.buffer(t, rows, g.ValueHeads, s.random(rows*g.ValueHeads)), ALog: aLog, DTBias: dtBias, Layer: l})
			}
		})
		each(step)
	}
}

// tape goes back from many lengths by many lengths: the state is the one that was there, bit for bit, and so is what a tape
// that was cut out leads to.
func (s *suite) tape(t *testing.T) {
	g := device.StateGeometry{Layers: 2, KeyHeads: 2, ValueHeads: 6, KeyDim: 8, ValueDim: 16, ConvTaps: 4}
	g.ConvChannels = 2*g.KeyHeads*g.KeyDim + g.ValueHeads*g.ValueDim
	first, ok := s.state(t, g).(device.TapedState)
	if !ok {
		t.Skip("this device keeps no tape, so a cancelled reply can only be gone on with from its end or its beginning")
	}
	second := s.state(t, g).(device.TapedState)
	const keep = 20
	for _, taped := range []device.TapedState{first, second} {
		if err := taped.Record(keep); err != nil {
			t.Fatal(err)
		}
	}
	was := [][]float32{stateBits(first)}
	s.decode(t, g, []device.State{first, second}, 90, func(step int) {
		was = append(was, stateBits(first))
		if n := first.TapeLen(); n < min(step+1, keep) {
			t.Fatalf("after %d tokens %d can be taken back", step+1, n)
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
			other := s.state(t, g).(device.TapedState)
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
		equalBits(t, label("taken back ", back), stateBits(first), was[n-1])
		was = was[:n]
	}
	first.Copy(second)
	if first.TapeLen() != 0 {
		t.Error("a tape outlives a copy into its state")
	}
}

// transfer takes pages and states out and puts them back elsewhere.
func (s *suite) transfer(t *testing.T) {
	kv, err := s.dev.KV(device.KVGeometry{Layers: 2, Heads: 2, HeadDim: 16, Pages: 4})
	if err != nil {
		t.Fatal(err)
	}
	pool, ok := kv.(device.PageTransfer)
	if !ok {
		t.Skip("this device does not give its memory out, so it has no disk tier")
	}
	for _, tokens := range []int{1, 100, device.PageTokens} {
		whole, back := make([]byte, pool.PageBytes(tokens)), make([]byte, pool.PageBytes(tokens))
		for i := range whole {
			whole[i] = byte(s.r.IntN(256))
		}
		pool.WritePage(3, whole, tokens)
		pool.ReadPage(back, 3, tokens)
		if !bytes.Equal(back, whole) {
			t.Fatalf("%d positions came back otherwise", tokens)
		}
		pool.CopyPage(1, 3)
		pool.ReadPage(back, 1, tokens)
		if !bytes.Equal(back, whole) {
			t.Fatalf("%d positions of a copied page came back otherwise", tokens)
		}
	}
	g := device.StateGeometry{Layers: 2, KeyHeads: 2, ValueHeads: 6, KeyDim: 8, ValueDim: 16, ConvTaps: 4, ConvChannels: 128}
	from := s.state(t, g).(device.StateTransfer)
	s.decode(t, g, []device.State{from}, 3, func(int) {})
	bits := make([]byte, from.Bytes())
	from.ReadAll(bits)
	to := s.state(t, g).(device.StateTransfer)
	to.WriteAll(bits)
	equalBits(t, "state", stateBits(to), stateBits(from))
}
