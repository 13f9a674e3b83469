package accept_test

import (
	"fmt"
	"math"
	"os"
	"testing"

	"slipway/engine/draft/accept"
	"slipway/engine/sample"
)

// drawn draws first and second tokens after a prompt with a draft of one token, from logits that are cached by prefix.
type drawn struct {
	p       *pocket
	params  sample.Params
	sampler *sample.Sampler
	logits  map[int32][2][][]float32         // by first token; -1: none. Target and head
	targets map[int32][2]sample.Distribution // after the prompt, after the first token
	drafts  map[int32][2]sample.Distribution
}

// after gives the distributions after the prompt (0) and after first (1), of target and draft.
func (d *drawn) after(first int32) (targets, drafts [2]sample.Distribution) {
	if t, known := d.targets[first]; known {
		return t, d.drafts[first]
	}
	rows, known := d.logits[first]
	if !known {
		rows[0], rows[1] = d.p.both([]int32{first})
		d.logits[first] = rows
	}
	for i := range 2 {
		targets[i] = distribution(d.p.t, d.sampler, rows[0][i], d.params)
		drafts[i] = distribution(d.p.t, d.sampler, rows[1][i], d.params)
	}
	d.targets[first], d.drafts[first] = targets, drafts
	return targets, drafts
}

// pair gives two tokens, drafted and verified as a reply's are.
func (d *drawn) pair(random func() float64) (first, second int32) {
	targets, drafts := d.after(d.p.prompt[0]) // any token: only what follows the prompt is used
	id := drafts[0].Pick(random())
	n, next, err := accept.Verify([]accept.Drafted{{ID: id, Q: drafts[0]}}, func(i int) (sample.Distribution, error) {
		if i == 1 {
			targets, _ = d.after(id)
		}
		return targets[i], nil
	}, random)
	if err != nil {
		d.p.t.Fatal(err)
	}
	if n == 1 {
		return id, next
	}
	first = next
	targets, drafts = d.after(first)
	id = drafts[1].Pick(random())
	n, next, err = accept.Verify([]accept.Drafted{{ID: id, Q: drafts[1]}}, func(i int) (sample.Distribution, error) {
		return [2]sample.Distribution{targets[1], targets[1]}[i], nil
	}, random)
	if err != nil {
		d.p.t.Fatal(err)
	}
	if n == 1 {
		next = id
	}
	return first, next
}

func TestSampledTokensAreDistributedAsWithoutADraft(t *testing.T) {
	const draws = 100_000
	names, soak := []string{"chat", "raw"}, os.Getenv("SLIPWAY_SOAK") != ""
	if soak {
		names = append(names, "unicode")
	}
	p, sampler, ids := openPocket(t), sample.NewSampler(4096), prompts(t)
	for _, name := range names {
		prompt := ids[name]
		p.begin(prompt[:min(len(prompt), 200)])
		logits := map[int32][2][][]float32{}
		for _, temperature := range []float64{0.3, 1, 1.5} {
			for _, cut := range []bool{true, false} {
				if name != "chat" && !cut && !soak {
					continue // Pocket babbles: thousands of prefixes, for minutes
				}
				params := sample.Neutral()
				params.Temperature = temperature
				if cut {
					params.TopP, params.TopK = 0.95, 20
				}
				what := fmt.Sprintf("%s, temperature %v, truncated %v", name, temperature, cut)
				d := &drawn{p: p, params: params, sampler: sampler, logits: logits,
					targets: map[int32][2]sample.Distribution{}, drafts: map[int32][2]sample.Distribution{}}
				random := sample.NewGenerator(17).Float64
				firsts, pairs := map[int32]float64{}, map[[2]int32]float64{}
				for range draws {
					a, b := d.pair(random)
					firsts[a]++
					pairs[[2]int32{a, b}]++
				}
				want, wantPairs := map[int32]float64{}, map[[2]int32]float64{}
				root, _ := d.after(prompt[0])
				for i, id := range root[0].IDs {
					want[id] = root[0].Probs[i] * float64(draws)
					if want[id] < 5 {
						continue // its pairs are pooled
					}
					second, _ := d.after(id)
					for k, next := range second[1].IDs {
						wantPairs[[2]int32{id, next}] = want[id] * second[1].Probs[k]
					}
				}
				check(t, what+", first tokens", firsts, want, draws)
				check(t, what+", pairs", pairs, wantPairs, draws)
			}
		}
		p.end()
	}
}

// check is Pearson's test: outcomes that are expected less than 5 times are pooled.
func check[K comparable](t *testing.T, what string, got, want map[K]float64, draws int) {
	t.Helper()
	chi, bins := 0.0, 0
	restGot, restWant := float64(draws), float64(draws)
	for k, w := range want {
		if w < 5 {
			continue
		}
		chi += (got[k] - w) * (got[k] - w) / w
		bins++
		restGot, restWant = restGot-got[k], restWant-w
	}
	switch {
	case restWant >= 5:
		chi += (restGot - restWant) * (restGot - restWant) / restWant
		bins++
	case restGot > 25:
		t.Errorf("%s: %v outcomes of less than 5 that are expected", what, restGot)
	}
	if bins == 1 && restGot > 0 && restWant < 1e-6 {
		t.Errorf("%s: another outcome than the only one", what)
	}
	if p := upperTail(chi, bins-1); p <= 0.001 {
		t.Errorf("%s: chi-square %.1f over %d outcomes, p = %.2g", what, chi, bins, p)
	}
}

// upperTail is the probability that chi-square with k degrees of freedom exceeds x, by Wilson and Hilferty (1931).
func upperTail(x float64, k int) float64 {
	if k < 1 {
		return 1
	}
	v := 2 / (9 * float64(k))
	z := (math.Cbrt(x/float64(k)) - (1 - v)) / math.Sqrt(v)
	return math.Erfc(z/math.Sqrt2) / 2
}
