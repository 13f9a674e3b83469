package model

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"slipway/engine/device/cpu"
	"slipway/engine/pass"
	"slipway/engine/weights"
)

// The oracle's numbers come from transformers in float32 (testdata/README.md). Where its gap to
// the second-best token is under gapFloor, another order of summation may honestly answer otherwise.
const gapFloor = 0.005

type oraclePrompt struct {
	IDs           []int32   `json:"ids"`
	NLL           float64   `json:"nll"`
	LastTopIDs    []int     `json:"last_top_ids"`
	LastTopLogits []float64 `json:"last_top_logits"`
	Argmax        []int     `json:"argmax"`
	ArgmaxGap     []float64 `json:"argmax_gap"`
	MTPArgmax     []int     `json:"mtp_argmax"`
	MTPGap        []float64 `json:"mtp_gap"`
	Greedy        []int32   `json:"greedy"`
	GreedyGap     []float64 `json:"greedy_gap"`
}

const (
	pocketQ4   = "../../manifests/pocket"
	pocketBF16 = "testdata/bf16"
)

func readOracle(t *testing.T, name string) map[string]oraclePrompt {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/oracle", name))
	if err != nil {
		t.Fatal(err)
	}
	var prompts map[string]oraclePrompt
	if err := json.Unmarshal(text, &prompts); err != nil {
		t.Fatal(err)
	}
	if len(prompts) != 9 {
		t.Fatalf("%s has %d prompts, wanted 9", name, len(prompts))
	}
	return prompts
}

func names[T any](m map[string]T) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// load opens a checkpoint on a CPU of its own, both closed with the test.
func load(t testing.TB, dir string, opt Options) *Network {
	t.Helper()
	ckpt, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New(0)
	t.Cleanup(func() { dev.Close(); ckpt.Close() })
	n, err := Load(dev, ckpt, opt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newSequence(t testing.TB, n *Network) *Sequence {
	t.Helper()
	s, err := n.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// forward runs tokens through s in chunks and returns the rows wanted, copied.
func forward(t testing.TB, s *Sequence, tokens []int32, chunk int, wanted pass.Logits, hidden []float32) [][]float32 {
	t.Helper()
	var out [][]float32
	h := s.net.config.Hidden
	for at := 0; at < len(tokens); at += chunk {
		end := min(at+chunk, len(tokens))
		g := pass.Segment{Seq: s, Tokens: tokens[at:end], Logits: wanted}
		if wanted == pass.LogitsLast && end < len(tokens) {
			g.Logits = pass.LogitsNone
		}
		if hidden != nil {
			g.Hidden = hidden[at*h : end*h]
		}
		rows, err := s.net.Forward(context.Background(), []pass.Segment{g})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows[0] {
			out = append(out, append([]float32(nil), r...))
		}
	}
	return out
}

func argmax(x []float32) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}

// logProb is log softmax(x)[i] in float64.
func logProb(x []float32, i int) float64 {
	top := float64(x[argmax(x)])
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	return float64(x[i]) - top - math.Log(sum)
}

func TestOracleAgreesInEveryPositionAndGreedyStep(t *testing.T) {
	for _, form := range []struct{ name, dir, oracle string }{
		{"4-bit MLX", pocketQ4, "oracle-q4.json"},
		{"BF16 Hugging Face", pocketBF16, "oracle-bf16.json"},
	} {
		t.Run(form.name, func(t *testing.T) {
			n := load(t, form.dir, Options{WindowTokens: 8192, MaxSequences: 1, Draft: DraftMTP})
			prompts := readOracle(t, form.oracle)
			for _, name := range names(prompts) {
				t.Run(name, func(t *testing.T) { checkPrompt(t, n, prompts[name]) })
			}
		})
	}
}

func checkPrompt(t *testing.T, n *Network, want oraclePrompt) {
	s := newSequence(t, n)
	defer s.Close()
	hidden := make([]float32, len(want.IDs)*n.config.Hidden)
	logits := forward(t, s, want.IDs, 512, pass.LogitsAll, hidden)
	last := logits[len(logits)-1]

	for i, id := range want.Argmax {
		if want.ArgmaxGap[i] >= gapFloor && argmax(logits[i]) != id {
			t.Fatalf("position %d: argmax %d, oracle %d (gap %.4f)", i, argmax(logits[i]), id, want.ArgmaxGap[i])
		}
	}
	for i, id := range want.LastTopIDs {
		if d := math.Abs(float64(last[id]) - want.LastTopLogits[i]); d > 0.002 {
			t.Errorf("last logit of %d: %f, oracle %f", id, last[id], want.LastTopLogits[i])
		}
	}
	if len(want.IDs) > 1 {
		var nll float64
		for i, id := range want.IDs[1:] {
			nll -= logProb(logits[i], int(id))
		}
		nll /= float64(len(want.IDs) - 1)
		if math.Abs(nll-want.NLL) > 0.0005 {
			t.Errorf("nll %f, oracle %f", nll, want.NLL)
		}
	}
	checkMTP(t, n, s, want, hidden, int32(argmax(last)))
	checkGreedy(t, s, want, last)
}

func checkMTP(t *testing.T, n *Network, s *Sequence, want oraclePrompt, hidden []float32, next int32) {
	tokens := append(append([]int32(nil), want.IDs[1:]...), next)
	for at := 0; at < len(tokens); at += 200 {
		end := min(at+200, len(tokens))
		rows, err := n.MTP(context.Background(), []pass.HeadSegment{
			{Seq: s, Slot: at, Tokens: tokens[at:end], Hidden: hidden[at*n.config.Hidden : end*n.config.Hidden],
				Logits: pass.LogitsAll}})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range rows[0] {
			if id := want.MTPArgmax[at+i]; want.MTPGap[at+i] >= gapFloor && argmax(r) != id {
				t.Fatalf("MTP slot %d: argmax %d, oracle %d (gap %.4f)", at+i, argmax(r), id, want.MTPGap[at+i])
			}
		}
	}
}

func checkGreedy(t *testing.T, s *Sequence, want oraclePrompt, last []float32) {
	for i, id := range want.Greedy {
		if want.GreedyGap[i] < gapFloor {
			return
		}
		got := int32(argmax(last))
		if got != id {
			t.Fatalf("greedy step %d: %d, oracle %d (gap %.4f)", i, got, id, want.GreedyGap[i])
		}
		if i+1 < len(want.Greedy) {
			last = forward(t, s, []int32{got}, 1, pass.LogitsLast, nil)[0]
		}
	}
}
