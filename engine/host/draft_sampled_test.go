package host

import (
	"math"
	"os"
	"testing"

	"slipway/engine/sample"
	"slipway/engine/serve"
)

// Whole replies are distributed as without a draft: 400 of each (1,000 in make soak), with fixed seeds, compared by a
// chi-square test of two samples over the tokens at each place behind the first: those that a draft proposed.
func TestSampledRepliesAreDistributedAsWithoutADraft(t *testing.T) {
	const positions = 4
	type setting struct {
		temperature float64
		truncated   bool
	}
	replies, settings, drafts := 400, []setting{{1, true}}, []string{"dflash2"}
	if os.Getenv("SLIPWAY_SOAK") != "" {
		replies = 1000
		settings = []setting{{0.3, true}, {1, true}, {1.5, true}, {0.3, false}, {1, false}, {1.5, false}}
		drafts = append(drafts, "mtp")
	}
	prompt := textsOf(t)[4][:200] // Pocket babbles, so that many tokens are likely
	for _, s := range settings {
		p := sample.Neutral()
		p.Temperature = s.temperature
		if s.truncated {
			p.TopP, p.TopK = 0.95, 20
		}
		counts := map[string]*[positions]map[int32]float64{}
		for _, draft := range append([]string{"none"}, drafts...) {
			h := startDrafted(t, draft, 0, 16<<20)
			counts[draft] = new([positions]map[int32]float64)
			for i := range counts[draft] {
				counts[draft][i] = map[int32]float64{}
			}
			taken := 0
			for seed := range replies {
				q := serve.Request{Prompt: prompt, MaxTokens: positions + 1, Sampling: p, TopLogprobs: -1}
				if q.Seed = uint64(seed); draft != "none" {
					q.Seed, q.DraftTokens = uint64(seed+1_000_000), 2
				}
				a := h.ask(q, 0)
				taken += a.usage.Drafts.Accepted()
				for i := range counts[draft] {
					if i+1 < len(a.IDs) {
						counts[draft][i][a.IDs[i+1]]++
					}
				}
			}
			if draft != "none" && taken < replies/20 {
				t.Errorf("%s: %d drafted tokens were taken, too few to test them", draft, taken)
			}
		}
		for _, draft := range drafts {
			varied := 0
			for i := range counts[draft] {
				p, bins := twoSamples(counts["none"][i], counts[draft][i])
				if varied = max(varied, bins); !(p > 0.001) {
					t.Errorf("%s, temperature %v, truncated %v, token %d: p = %.2g over %d outcomes", draft,
						s.temperature, s.truncated, i+2, p, bins)
				}
			}
			if varied < 3 {
				t.Errorf("%s, temperature %v: at most %d tokens are likely", draft, s.temperature, varied)
			}
		}
	}
}

// twoSamples is the probability that two samples of one size and one distribution differ as much: chi-square, outcomes
// of less than 10 together pooled, and its tail by Wilson and Hilferty (1931).
func twoSamples(a, b map[int32]float64) (p float64, bins int) {
	chi, restA, restB := 0.0, 0.0, 0.0
	add := func(x, y float64) {
		chi += (x - y) * (x - y) / (x + y)
		bins++
	}
	all := map[int32]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	for k := range all {
		if a[k]+b[k] < 10 {
			restA, restB = restA+a[k], restB+b[k]
			continue
		}
		add(a[k], b[k])
	}
	if restA+restB >= 10 {
		add(restA, restB)
	}
	if bins == 1 { // all are in it
		return 1, 1
	}
	k := float64(bins - 1)
	v := 2 / (9 * k)
	return math.Erfc((math.Cbrt(chi/k)-(1-v))/math.Sqrt(v)/math.Sqrt2) / 2, bins
}

// Two samples that differ are told apart.
func TestSamplesThatDifferAreSeen(t *testing.T) {
	a := map[int32]float64{1: 500, 2: 300, 3: 200}
	b := map[int32]float64{1: 400, 2: 350, 3: 250}
	if p, bins := twoSamples(a, b); p > 0.001 || bins != 3 {
		t.Errorf("p = %.2g over %d outcomes", p, bins)
	}
	if p, _ := twoSamples(a, a); p < 0.9 {
		t.Errorf("of equal ones p = %.2g", p)
	}
}
