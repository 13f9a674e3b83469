package model

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"

	"slipway/engine/device"
	"slipway/engine/pass"
)

// The approximate prefill's vectors: sink 64, window 128; each prefilled range [start, end) is masked but for its last
// tail rows, and decoding is dense.
func TestOracleAgreesUnderTheApproximatePolicy(t *testing.T) {
	text, err := os.ReadFile("testdata/oracle/approx-q4.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]struct {
		Sink, Window int
		Epochs       [][3]int
		IDsLen       int `json:"ids_len"`
		Argmax       []int
		Greedy       []int32
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	tensors, err := os.ReadFile("testdata/oracle/approx-q4.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	last := decodeSafetensors(t, tensors)
	prompts := readOracle(t, "oracle-q4.json")
	n := load(t, pocketQ4, Options{WindowTokens: 8192, MaxSequences: 1})
	for _, name := range names(cases) {
		want := cases[name]
		t.Run(name, func(t *testing.T) {
			for _, chunk := range []int{512, 100} {
				s := newSequence(t, n)
				var logits [][]float32
				for _, e := range want.Epochs {
					policy := device.AttentionPolicy{Sink: want.Sink, Window: want.Window, DenseFrom: e[1] - e[2]}
					for at := e[0]; at < e[1]; at += chunk {
						rows, err := n.Forward(context.Background(), []pass.Segment{
							{Seq: s, Tokens: prompts[name].IDs[at:min(at+chunk, e[1])], Logits: pass.LogitsAll,
								Policy: policy}})
						if err != nil {
							t.Fatal(err)
						}
						for _, r := range rows[0] {
							logits = append(logits, append([]float32(nil), r...))
						}
					}
				}
				end := logits[len(logits)-1]
				for i, v := range last[name+".logits_last"].values {
					if d := math.Abs(float64(end[i]) - float64(v)); d > 0.002 {
						t.Fatalf("last logit %d: %f, oracle %f", i, end[i], v)
					}
				}
				differ := 0
				for i, id := range want.Argmax {
					// The file has no gaps for these: where ours is clear, it must be the oracle's.
					if got := argmax(logits[i]); got != id && float64(logits[i][got]-logits[i][id]) >= gapFloor {
						differ++
					}
				}
				if differ > 0 {
					t.Errorf("%d of %d positions differ from the oracle by a clear margin", differ, len(want.Argmax))
				}
				for i, id := range want.Greedy {
					got := int32(argmax(end))
					if got != id {
						if end[got]-end[id] < gapFloor {
							break // too close to call
						}
						t.Fatalf("greedy step %d: %d, oracle %d", i, got, id)
					}
					if i+1 < len(want.Greedy) {
						end = forward(t, s, []int32{got}, 1, pass.LogitsLast, nil)[0]
					}
				}
				s.Close()
			}
		})
	}
}
