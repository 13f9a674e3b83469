package serve_test

import (
	"errors"
	"slices"
	"testing"

	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/serve/servetest"
)

// A device that chooses changes no reply, and is not asked where more than the largest logits decide.
func TestReplyDoesNotDependOnWhereTheTokenIsChosen(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*serve.Request)
		asked  bool
	}{
		{"greedy", func(r *serve.Request) { r.Sampling.Temperature = 0 }, true},
		{"the model's defaults", func(r *serve.Request) { r.Sampling.TopK, r.Sampling.TopP = 20, 0.95 }, true},
		{"hot", func(r *serve.Request) { r.Sampling.TopK, r.Sampling.Temperature, r.Sampling.MinP = 32, 2, 0.01 },
			true},
		{"all of the row", func(r *serve.Request) {}, false},
		{"a nucleus of the whole row", func(r *serve.Request) { r.Sampling.TopP = 0.9 }, false},
		{"more than is chosen", func(r *serve.Request) { r.Sampling.TopK = sample.MostTop + 1 }, false},
		{"a penalty", func(r *serve.Request) { r.Sampling.TopK, r.Sampling.PresencePenalty = 20, 1.5 }, false},
		{"a bias", func(r *serve.Request) { r.Sampling.TopK, r.Sampling.LogitBias = 20, map[int32]float64{4: 5} },
			false},
		{"probabilities asked for", func(r *serve.Request) { r.Sampling.TopK, r.TopLogprobs = 20, 2 }, false},
		{"a mask", func(r *serve.Request) {
			r.Sampling.TopK = 20
			r.Mask = func([]int32) sample.Mask {
				m := sample.NewMask(vocab)
				for id := int32(2); id < 9; id++ {
					m.Allow(id)
				}
				return m
			}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said [2][]int32
			for i, choose := range []bool{false, true} {
				net := &servetest.Network{Choose: choose}
				h := start(t, net, serve.Options{Queue: 4})
				for seed := range uint64(4) {
					r := request("x", 5, 30)
					r.Sampling, r.Seed = sample.Neutral(), seed
					c.change(&r)
					beside := submit(t, h, request("y", 3, 30)) // greedy, in the same passes
					_, tokens, _ := read(t, submit(t, h, r))
					_, others, _ := read(t, beside)
					said[i] = append(append(said[i], tokens...), others...)
				}
				if !choose {
					continue
				}
				greedy := 4 * 30
				if asked := net.Chosen(); c.asked != (asked > greedy) {
					t.Errorf("%d rows were chosen from", asked)
				}
			}
			if !slices.Equal(said[0], said[1]) || len(said[0]) < 100 {
				t.Errorf("read whole   %v\nchosen from  %v", said[0], said[1])
			}
		})
	}
}

// One logit far from the largest is NaN: the reply ends with the same error whether host or device chooses.
func TestNaNAmongLogitsIsAnErrorWhereverTheTokenIsChosen(t *testing.T) {
	for _, choose := range []bool{false, true} {
		for _, topK := range []int{1, 20} {
			h := start(t, &servetest.Network{Choose: choose, NaN: func([]int32) int32 { return vocab - 1 }},
				serve.Options{})
			r := request("x", 5, 30)
			r.Sampling.TopK = topK
			if topK > 1 {
				r.Sampling.Temperature = 1
			}
			_, tokens, ended := read(t, submit(t, h, r))
			if len(tokens) > 0 || ended.Reason != serve.FinishError || !errors.Is(ended.Err, sample.ErrNotANumber) {
				t.Errorf("chosen by the device %v, top_k %d: %v, then %+v", choose, topK, tokens, ended)
			}
		}
	}
}
