package accept_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"slipway/engine/device/cpu"
	"slipway/engine/draft/accept"
	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/sample"
	"slipway/engine/weights"
)

const endOfTurn = 4088 // Pocket's <|im_end|>

// pocket is the embedded model with its MTP head, and a sequence that holds a prompt without its last token.
type pocket struct {
	t      *testing.T
	n      *model.Network
	prompt []int32
	hidden int
	point  pass.State // of prompt without its last token; nil: not begun
	ahead  []float32  // final row of the last token of point
}

func openPocket(t *testing.T) *pocket {
	t.Helper()
	ckpt, err := weights.Open("../../../manifests/pocket")
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New(0)
	t.Cleanup(func() { dev.Close(); ckpt.Close() })
	n, err := model.Load(dev, ckpt, model.Options{WindowTokens: 1024, MaxSequences: 1, ExtraPages: 4,
		Draft: model.DraftMTP})
	if err != nil {
		t.Fatal(err)
	}
	return &pocket{t: t, n: n, hidden: n.Config().Hidden}
}

// begin computes a prompt.
func (p *pocket) begin(prompt []int32) {
	p.t.Helper()
	p.prompt = prompt
	s := p.sequence()
	defer s.Close()
	all := len(prompt) - 1
	rows := make([]float32, all*p.hidden)
	if _, err := p.n.Forward(context.Background(), []pass.Segment{
		{Seq: s, Tokens: prompt[:all], Hidden: rows}}); err != nil {
		p.t.Fatal(err)
	}
	p.mtp(s, 0, prompt[1:all], rows, pass.LogitsNone, nil)
	p.ahead = rows[(all-1)*p.hidden:]
	var err error
	if p.point, err = s.Save(false); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pocket) end() { p.point.Release() }

func (p *pocket) sequence() *model.Sequence {
	s, err := p.n.NewSequence()
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// mtp gives rows of the head, copied.
func (p *pocket) mtp(s *model.Sequence, slot int, tokens []int32, rows []float32, wanted pass.Logits,
	out []float32) [][]float32 {
	p.t.Helper()
	got, err := p.n.MTP(context.Background(), []pass.HeadSegment{
		{Seq: s, Slot: slot, Tokens: tokens, Hidden: rows, Logits: wanted, HiddenOut: out}})
	if err != nil {
		p.t.Fatal(err)
	}
	return copied(got[0])
}

func copied(rows [][]float32) (out [][]float32) {
	for _, r := range rows {
		out = append(out, slices.Clone(r))
	}
	return out
}

// both gives the target's logits after the prompt's last token and after each of the tokens that follow it, and the
// head's for the token after the same ones: row i of both is for what follows i of them.
func (p *pocket) both(follow []int32) (target, head [][]float32) {
	p.t.Helper()
	s := p.sequence()
	defer s.Close()
	s.Restore(p.point, p.point.Len())
	tokens := append([]int32{p.prompt[len(p.prompt)-1]}, follow...)
	rows := make([]float32, len(tokens)*p.hidden)
	got, err := p.n.Forward(context.Background(), []pass.Segment{
		{Seq: s, Tokens: tokens, Logits: pass.LogitsAll, Hidden: rows}})
	if err != nil {
		p.t.Fatal(err)
	}
	target = copied(got[0])
	rows = append(slices.Clone(p.ahead), rows...)
	return target, p.mtp(s, len(p.prompt)-2, tokens, rows, pass.LogitsAll, nil)
}

type acceptanceCase struct {
	Prompt      int       `json:"prompt_tokens"`
	Scored      int       `json:"scored_tokens"`
	Greedy      float64   `json:"greedy_match"`
	Independent float64   `json:"independent_samples"`
	Mismatched  float64   `json:"rejection_mismatched"`
	Matched     float64   `json:"rejection_matched"`
	Untruncated float64   `json:"rejection_untruncated"`
	Sampled     [][]int32 `json:"sampled"`
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../model/testdata/oracle/" + name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func prompts(t *testing.T) map[string][]int32 {
	var oracle map[string]struct {
		IDs []int32 `json:"ids"`
	}
	readJSON(t, "oracle-q4.json", &oracle)
	ids := map[string][]int32{}
	for name, o := range oracle {
		ids[name] = o.IDs
	}
	return ids
}

// distribution copies what a sampler gives.
func distribution(t *testing.T, s *sample.Sampler, logits []float32, p sample.Params) sample.Distribution {
	t.Helper()
	d, err := s.Distribution(logits, p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sample.Distribution{IDs: slices.Clone(d.IDs), Probs: slices.Clone(d.Probs)}
}

func TestAcceptanceOfPocketsHeadIsTheOracles(t *testing.T) {
	var oracle struct {
		Results map[string]acceptanceCase `json:"results"`
	}
	readJSON(t, "acceptance-q4.json", &oracle)
	if len(oracle.Results) != 3 {
		t.Fatalf("the oracle has %d texts", len(oracle.Results))
	}
	p, sampler, ids := openPocket(t), sample.NewSampler(4096), prompts(t)
	whole, cut, greedy := sample.Neutral(), sample.Neutral(), sample.Neutral()
	cut.TopP, cut.TopK, greedy.Temperature = 0.95, 20, 0
	for name, want := range oracle.Results {
		p.begin(ids[name][:want.Prompt])
		var got acceptanceCase
		for _, sampled := range want.Sampled {
			if end := slices.Index(sampled, endOfTurn); end >= 0 {
				sampled = sampled[:end+1]
			}
			target, head := p.both(sampled[:len(sampled)-1])
			for i := 1; i < len(sampled); i++ { // the head's proposal needs a sampled token
				at := func(params sample.Params) (sample.Distribution, sample.Distribution) {
					return distribution(t, sampler, target[i], params), distribution(t, sampler, head[i], params)
				}
				gp, gq := at(greedy)
				cp, cq := at(cut)
				wp, wq := at(whole)
				got.Scored++
				got.Greedy += accept.Rate(gp, gq)
				for k, id := range cp.IDs {
					got.Independent += cp.Probs[k] * cq.Prob(id)
				}
				got.Mismatched += accept.Rate(wp, cq) // the oracle cuts the draft alone
				got.Matched += accept.Rate(cp, cq)
				got.Untruncated += accept.Rate(wp, wq)
			}
		}
		p.end()
		if got.Scored != want.Scored {
			t.Errorf("%s: %d positions are scored, the oracle scores %d", name, got.Scored, want.Scored)
		}
		for _, rule := range []struct {
			name      string
			got, want float64
		}{{"greedy", got.Greedy, want.Greedy}, {"independent samples", got.Independent, want.Independent},
			{"mismatched truncation", got.Mismatched, want.Mismatched},
			{"matched", got.Matched, want.Matched}, {"untruncated", got.Untruncated, want.Untruncated}} {
			mean := rule.got / float64(got.Scored)
			if math.Abs(mean-rule.want) > 0.002 {
				t.Errorf("%s, %s: %.5f of the proposals are accepted, the oracle's share is %.5f", name, rule.name,
					mean, rule.want)
			}
		}
		if name != "needle_short" && (got.Independent >= got.Matched || got.Mismatched >= got.Matched) {
			t.Errorf("%s: matched rejection accepts no more than the other rules", name)
		}
	}
}
