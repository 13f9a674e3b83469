package model

import (
	"fmt"
	"math"
	"os"
	"testing"

	"slipway/engine/device"
	"slipway/engine/model/arch"
	"slipway/engine/pass"
)

// within reports the largest difference as a share of want's largest value.
func within[T float32 | float64](t *testing.T, what string, got []float32, want []T, share float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, wanted %d", what, len(got), len(want))
	}
	var top, worst float64
	for i, v := range want {
		top = max(top, math.Abs(float64(v)))
		d := math.Abs(float64(got[i]) - float64(v))
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		worst = max(worst, d)
	}
	if top == 0 || worst > share*top {
		t.Errorf("%s: off by %g of a largest value of %g, allowed %g of it", what, worst, top, share)
	}
}

func flatten(rows [][]float64) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}

// keysAndValues reads positions [0,n) of an attention layer, [n, Hkv·D] each.
func keysAndValues(s *Sequence, layer, n int) (keys, values []float32) {
	g := s.net.kv.Geometry()
	row := g.Heads * g.HeadDim
	keys, values = make([]float32, n*row), make([]float32, n*row)
	for p := range n {
		s.net.kv.Read(keys[p*row:(p+1)*row], values[p*row:(p+1)*row], layer, s.pages.ids[p/device.PageTokens],
			p%device.PageTokens)
	}
	return keys, values
}

// headsFirst turns [positions, heads, dim] into the oracle's [heads, positions, dim].
func headsFirst(x []float32, heads, dim int) []float32 {
	n := len(x) / heads / dim
	out := make([]float32, 0, len(x))
	for h := range heads {
		for p := range n {
			out = append(out, x[(p*heads+h)*dim:(p*heads+h+1)*dim]...)
		}
	}
	return out
}

func TestOracleAgreesAfterEveryLayer(t *testing.T) {
	text, err := os.ReadFile("testdata/oracle/oracle-bf16.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	oracle := decodeSafetensors(t, text)
	hello := readOracle(t, "oracle-bf16.json")["hello"].IDs
	n := load(t, pocketBF16, Options{WindowTokens: 512, MaxSequences: 1, TapLayers: []int{0, 1, 2, 3, 4, 5, 6, 7}})
	c := n.config
	s := newSequence(t, n)
	hidden := make([]float32, len(hello)*c.Hidden)
	logits := forward(t, s, hello, len(hello), pass.LogitsAll, hidden)
	// The oracle's hidden.0 is the embedding, hidden.L the output of layer L-1, and the last one is after the final
	// norm.
	for l := range len(c.Layers) - 1 {
		within(t, fmt.Sprintf("output of layer %d", l), n.Tap(l), oracle[fmt.Sprintf("hello.hidden.%d", l+1)].values,
			1e-3)
	}
	within(t, "final norm", hidden, oracle["hello.hidden.8"].values, 1e-3)
	for i, want := range []int{0, len(hello) / 2, len(hello) - 1} {
		within(t, fmt.Sprintf("logits %d", i), logits[want],
			oracle["hello.logits"].values[want*c.VocabSize:(want+1)*c.VocabSize], 1e-3)
	}
	for i, layer := range []int{3, 7} {
		k, v := keysAndValues(s, i, len(hello))
		within(t, fmt.Sprintf("keys of layer %d", layer), headsFirst(k, c.KVHeads, c.HeadDim),
			oracle[fmt.Sprintf("hello.cache.%d.keys", layer)].values, 1e-3)
		within(t, fmt.Sprintf("values of layer %d", layer), headsFirst(v, c.KVHeads, c.HeadDim),
			oracle[fmt.Sprintf("hello.cache.%d.values", layer)].values, 1e-3)
	}
}

// The oracle's file holds no recurrent and conv states (transformers keeps them under other names than its writer
// looked for), so these are compared with the float64 evaluation, whose own logits are compared with the oracle's.
func TestRecurrentAndConvStatesAreThoseOfTheFormulas(t *testing.T) {
	want := readOracle(t, "oracle-bf16.json")["hello"]
	p := newPlain(t, pocketBF16)
	var last []float64
	for _, id := range want.IDs {
		last = p.step(id)
	}
	for i, id := range want.LastTopIDs {
		if math.Abs(last[id]-want.LastTopLogits[i]) > 0.002 {
			t.Fatalf("the evaluation itself differs from the oracle: logit of %d is %f, not %f", id, last[id],
				want.LastTopLogits[i])
		}
	}
	n := load(t, pocketBF16, Options{WindowTokens: 512, MaxSequences: 1})
	s := newSequence(t, n)
	forward(t, s, want.IDs, 512, pass.LogitsLast, nil)
	checkStates(t, s, p, 1e-3)
}

func checkStates(t *testing.T, s *Sequence, p *plain, share float64) {
	t.Helper()
	c := p.c
	index := 0
	for l, kind := range c.Layers {
		if kind.Mixer == arch.FullAttention {
			continue
		}
		matrices, tail := make([]float32, len(p.s[l])), make([]float32, len(p.tail[l]))
		s.state.Read(matrices, tail, index)
		index++
		within(t, fmt.Sprintf("recurrent state of layer %d", l), matrices, p.s[l], share)
		within(t, fmt.Sprintf("conv state of layer %d", l), tail, p.tail[l], share)
	}
}

func TestRandomModelsAgreeWithTheFormulas(t *testing.T) {
	for _, shape := range []struct {
		name string
		geometry
		tokens int
	}{
		{"head shapes of the 27B", geometry{vocab: 257, hidden: 96, intermediate: 160, layers: 4, heads: 24, kvHeads: 4,
			headDim: 256, keyHeads: 16, valueHeads: 48, keyDim: 128, valueDim: 128}, 12},
		{"odd ratios past one chunk", geometry{vocab: 97, hidden: 48, intermediate: 80, layers: 4, heads: 6, kvHeads: 2,
			headDim: 32, keyHeads: 2, valueHeads: 6, keyDim: 8, valueDim: 16}, 70},
		{"past a page", geometry{vocab: 33, hidden: 32, intermediate: 32, layers: 4, heads: 2, kvHeads: 1, headDim: 16,
			keyHeads: 1, valueHeads: 2, keyDim: 8, valueDim: 8}, 300},
	} {
		t.Run(shape.name, func(t *testing.T) {
			dir := shape.write(t, 7)
			tokens := randomTokens(shape.tokens, shape.vocab, 3)
			p := newPlain(t, dir)
			var want [][]float64
			for _, id := range tokens {
				want = append(want, p.step(id))
			}
			n := load(t, dir, Options{WindowTokens: 512, MaxSequences: 1, TapLayers: []int{0, 1, 2, 3}})
			s := newSequence(t, n)
			hidden := make([]float32, len(tokens)*n.config.Hidden)
			got := forward(t, s, tokens, len(tokens), pass.LogitsAll, hidden)
			for l := range 4 {
				within(t, fmt.Sprintf("output of layer %d", l), n.Tap(l), flatten(p.hidden[l]), 1e-4)
			}
			within(t, "final norm", hidden, flatten(p.final), 1e-4)
			for i := range got {
				within(t, fmt.Sprintf("logits %d", i), got[i], want[i], 1e-4)
			}
			k, v := keysAndValues(s, 0, len(tokens))
			within(t, "keys", k, p.k[3], 1e-4)
			within(t, "values", v, p.v[3], 1e-4)
			checkStates(t, s, p, 1e-4)
		})
	}
}
