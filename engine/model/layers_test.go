package model

import (
	"fmt"
	"slices"
	"testing"

	"slipway/engine/device/cpu"
	"slipway/engine/model/arch"
	"slipway/engine/pass"
	"slipway/engine/weights"
)

// A family chooses its layers: one whose layers all attend fully has no recurrent state, no convolution, and norms as
// they are stored.
func TestNetworkWithoutRecurrentLayersAgreesWithTheFormulas(t *testing.T) {
	g := geometry{vocab: 61, hidden: 48, intermediate: 80, layers: 3, heads: 6, kvHeads: 2, headDim: 16,
		keyHeads: 1, valueHeads: 1, keyDim: 8, valueDim: 8, interval: 1}
	dir := g.write(t, 11)
	ckpt, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	c := &Config{ModelType: "of a test", VocabSize: g.vocab, MaxPositions: 512, EOS: []int32{1}, Tied: true,
		Hidden: g.hidden, Intermediate: g.intermediate, Eps: 1e-6, Heads: g.heads, KVHeads: g.kvHeads,
		HeadDim: g.headDim, RotaryDims: 8, RopeTheta: 1e6,
		Layers: slices.Repeat([]arch.Layer{{Mixer: arch.FullAttention}}, g.layers)}
	if got := c.Geometry().StateBytes(); got != 0 {
		t.Errorf("sizing prices %d bytes of recurrent state", got)
	}
	p := newPlainOf(t, dir, ckpt, c, 0)
	tokens := randomTokens(40, g.vocab, 5)
	var want [][]float64
	for _, id := range tokens {
		want = append(want, p.step(id))
	}
	dev := cpu.New(0)
	t.Cleanup(func() { dev.Close() })
	n, err := build(dev, ckpt, c, Options{WindowTokens: 128, MaxSequences: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := newSequence(t, n)
	got := forward(t, s, tokens, 7, pass.LogitsAll, nil)
	for i := range got {
		within(t, fmt.Sprintf("logits %d", i), got[i], want[i], 1e-4)
	}
}
