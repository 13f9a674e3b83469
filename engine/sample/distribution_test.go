package sample_test

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"testing"

	"slipway/engine/sample"
)

// plainly is the textbook form, kept as the reference: sort everything, softmax, cut.
func plainly(logits []float64, p sample.Params) map[int32]float64 {
	type entry struct {
		id   int32
		prob float64
	}
	top := math.Inf(-1)
	for _, l := range logits {
		top = math.Max(top, l)
	}
	var all []entry
	for id, l := range logits {
		all = append(all, entry{int32(id), math.Exp((l - top) / p.Temperature)})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].prob > all[j].prob })
	normalise := func() {
		total := 0.0
		for _, e := range all {
			total += e.prob
		}
		for i := range all {
			all[i].prob /= total
		}
	}
	if p.TopK > 0 && p.TopK < len(all) {
		all = all[:p.TopK]
	}
	normalise()
	if p.TopP < 1 {
		before, n := 0.0, 0
		for n < len(all) && before < p.TopP {
			before += all[n].prob
			n++
		}
		all = all[:n]
		normalise()
	}
	for len(all) > 1 && all[len(all)-1].prob < p.MinP*all[0].prob {
		all = all[:len(all)-1]
	}
	normalise()
	out := map[int32]float64{}
	for _, e := range all {
		out[e.id] = e.prob
	}
	return out
}

func TestDistributionDiffersFromThePlainForm(t *testing.T) {
	g := sample.NewGenerator(1)
	for i := range 300 {
		vocab := 1 + int(g.Uint64()%97)
		logits, wide := make([]float32, vocab+3), make([]float64, vocab)
		for id := range logits {
			logits[id] = 1000 // padding: must not matter
			if id < vocab {
				logits[id] = float32(g.Float64()*12 - 6)
				wide[id] = float64(logits[id])
			}
		}
		p := sample.Neutral()
		p.Temperature = []float64{0.2, 0.7, 1, 2}[g.Uint64()%4]
		p.TopK = []int{0, 1, 2, 20, 1000}[g.Uint64()%5]
		p.TopP = []float64{0.01, 0.5, 0.95, 1}[g.Uint64()%4]
		p.MinP = []float64{0, 0.05, 0.5, 1}[g.Uint64()%4]
		name := fmt.Sprintf("row %d: vocab %d, %+v", i, vocab, p)

		got, err := sample.NewSampler(vocab).Distribution(logits, p, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := plainly(wide, p)
		if len(got.IDs) != len(want) {
			t.Fatalf("%s: kept %v, want %v", name, got.IDs, want)
		}
		for i, id := range got.IDs {
			if math.Abs(got.Probs[i]-want[id]) > 1e-12 {
				t.Fatalf("%s: token %d has %v, want %v", name, id, got.Probs[i], want[id])
			}
		}
	}
}

func TestTopPSeesTheDistributionBeforeTopK(t *testing.T) {
	// 0.4 0.3 0.2 0.1: after top_k 2 the first has 4/7 = 0.571, so top_p 0.57 keeps one; before top_k it would keep
	// two.
	logits := []float32{float32(math.Log(.4)), float32(math.Log(.3)), float32(math.Log(.2)), float32(math.Log(.1))}
	p := sample.Neutral()
	p.TopK, p.TopP = 2, 0.57
	d, err := sample.NewSampler(4).Distribution(logits, p, nil, nil)
	if err != nil || len(d.IDs) != 1 || d.IDs[0] != 0 {
		t.Fatalf("kept %v, %v; want token 0 alone", d.IDs, err)
	}
}

func TestTopPKeepsMoreThanItsMassNeeds(t *testing.T) {
	p := sample.Neutral()
	p.TopP = 0.5
	if d, err := sample.NewSampler(2).Distribution([]float32{1, 1}, p, nil, nil); err != nil || len(d.IDs) != 1 ||
		d.IDs[0] != 0 {
		t.Errorf("kept %v, %v; the first has the half that was asked for", d.IDs, err)
	}
}

func TestPenaltiesAndBias(t *testing.T) {
	tests := []struct {
		name   string
		change func(*sample.Params)
		reply  []int32
		want   int32 // greedy
	}{
		{"nothing changed", func(p *sample.Params) {}, []int32{0}, 0},
		{"presence moves a used token below the next", func(p *sample.Params) { p.PresencePenalty = 1.5 }, []int32{0},
			1},
		{"presence does not count twice", func(p *sample.Params) { p.PresencePenalty = 0.9 }, []int32{0, 0, 0}, 0},
		{"frequency counts twice", func(p *sample.Params) { p.FrequencyPenalty = 0.6 }, []int32{0, 0}, 1},
		{"frequency does not see the prompt", func(p *sample.Params) { p.FrequencyPenalty = 2 }, nil, 0},
		{"repetition counts prompt and reply once", func(p *sample.Params) { p.RepetitionPenalty = 1.3 }, []int32{0, 0},
			0},
		{"repetition sees the prompt", func(p *sample.Params) { p.RepetitionPenalty = 2 }, nil, 1},
		{"repetition lowers a negative logit", func(p *sample.Params) {
			p.RepetitionPenalty = 10
			p.LogitBias = map[int32]float64{1: -100, 2: -100, 3: -100}
		}, nil, 0},
		{"bias lifts", func(p *sample.Params) { p.LogitBias = map[int32]float64{3: 100} }, nil, 3},
		{"bias forbids", func(p *sample.Params) { p.LogitBias = map[int32]float64{0: -100} }, nil, 1},
	}
	logits := []float32{3, 2, 1, -4}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := sample.Neutral()
			p.Temperature = 0
			test.change(&p)
			h := sample.NewHistory([]int32{0})
			for _, id := range test.reply {
				h.Add(id)
			}
			d, err := sample.NewSampler(4).Distribution(logits, p, h, nil)
			if err != nil || d.IDs[0] != test.want {
				t.Fatalf("chose %v, %v; want %d", d.IDs, err, test.want)
			}
		})
	}
	if logits[0] != 3 {
		t.Error("the network's own logits were changed")
	}
}

func TestMaskPaddingAndBrokenLogits(t *testing.T) {
	greedy := sample.Neutral()
	greedy.Temperature = 0
	s := sample.NewSampler(3)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))

	if d, err := s.Distribution([]float32{1, 2, 3, 99}, greedy, nil, nil); err != nil || d.IDs[0] != 2 {
		t.Errorf("padding row chosen: %v, %v", d.IDs, err)
	}
	mask := sample.NewMask(3)
	mask.Allow(1)
	for _, p := range []sample.Params{greedy, sample.Neutral()} {
		if d, err := s.Distribution([]float32{1, 2, 3, 99}, p, nil, mask); err != nil || len(d.IDs) != 1 ||
			d.IDs[0] != 1 {
			t.Errorf("a masked token is left: %v, %v", d.IDs, err)
		}
	}
	if _, err := s.Distribution([]float32{1, 2, 3}, greedy, nil, sample.NewMask(3)); !errors.Is(
		err, sample.ErrNothingAllowed) {
		t.Errorf("a mask that forbids all gives %v", err)
	}
	for _, bad := range [][]float32{{1, nan, 2}, {1, inf, 2}} {
		if _, err := s.Distribution(bad, greedy, nil, nil); !errors.Is(err, sample.ErrNotANumber) {
			t.Errorf("%v gives %v", bad, err)
		}
	}
}

func TestGreedyTieTakesTheSmallestID(t *testing.T) {
	p := sample.Neutral()
	p.Temperature = 0
	d, _ := sample.NewSampler(4).Distribution([]float32{1, 7, 7, 7}, p, nil, nil)
	if d.IDs[0] != 1 {
		t.Errorf("chose %d", d.IDs[0])
	}
	p = sample.Neutral()
	p.TopK = 2
	d, _ = sample.NewSampler(4).Distribution([]float32{1, 7, 7, 7}, p, nil, nil)
	if fmt.Sprint(d.IDs) != "[1 2]" {
		t.Errorf("top_k keeps %v", d.IDs)
	}
}

// The empirical frequencies of 200,000 draws: a chi-square over 4 cells has 3 degrees of freedom; 30 has a chance of
// 1e-6 by luck, and the seed is fixed anyway.
func TestDrawsFollowTheDistribution(t *testing.T) {
	probs := []float64{.55, .25, .15, .05}
	var logits []float32
	for _, p := range probs {
		logits = append(logits, float32(math.Log(p)))
	}
	d, err := sample.NewSampler(4).Distribution(logits, sample.Neutral(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const draws = 200_000
	g, counts := sample.NewGenerator(7), make([]float64, 4)
	for range draws {
		counts[d.Pick(g.Float64())]++
	}
	chi := 0.0
	for i, p := range probs {
		chi += (counts[i] - draws*p) * (counts[i] - draws*p) / (draws * p)
	}
	if chi > 30 {
		t.Errorf("counts %v of %v: chi-square %.1f", counts, probs, chi)
	}
}

func TestGeneratorFollowsItsPublishedSequence(t *testing.T) {
	// First outputs of SplitMix64 for seed 1234567, from the Rosetta Code page on it.
	g := sample.NewGenerator(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423} {
		if got := g.Uint64(); got != want {
			t.Errorf("output %d is %d, want %d", i, got, want)
		}
	}
}

func TestLogprobsDependOnTemperatureOrBias(t *testing.T) {
	logits := []float32{float32(math.Log(.5)), float32(math.Log(.3)), float32(math.Log(.2)), 50}
	chosen, top := sample.NewSampler(3).Logprobs(logits, 2, 2)
	if math.Abs(chosen.Logprob-math.Log(.2)) > 1e-6 {
		t.Errorf("chosen %v", chosen)
	}
	if len(top) != 2 || top[0].ID != 0 || top[1].ID != 1 || math.Abs(top[1].Logprob-math.Log(.3)) > 1e-6 {
		t.Errorf("top %v", top)
	}
	if _, none := sample.NewSampler(3).Logprobs(logits, 2, 0); len(none) != 0 {
		t.Errorf("top 0 gives %v", none)
	}
	if low, _ := sample.NewSampler(2).Logprobs([]float32{0, -1e9}, 1, 0); low.Logprob != sample.Lowest {
		t.Errorf("an impossible token has %v", low.Logprob)
	}
}

func TestParamsOutOfRangeAreNamed(t *testing.T) {
	tests := []struct {
		name, field string
		change      func(*sample.Params)
	}{
		{"temperature below 0", "temperature", func(p *sample.Params) { p.Temperature = -0.1 }},
		{"temperature NaN", "temperature", func(p *sample.Params) { p.Temperature = math.NaN() }},
		{"temperature above 2", "temperature", func(p *sample.Params) { p.Temperature = 2.1 }},
		{"top_p zero", "top_p", func(p *sample.Params) { p.TopP = 0 }},
		{"top_p above 1", "top_p", func(p *sample.Params) { p.TopP = 1.01 }},
		{"min_p above 1", "min_p", func(p *sample.Params) { p.MinP = 2 }},
		{"top_k below 0", "top_k", func(p *sample.Params) { p.TopK = -1 }},
		{"presence", "presence_penalty", func(p *sample.Params) { p.PresencePenalty = 3 }},
		{"frequency", "frequency_penalty", func(p *sample.Params) { p.FrequencyPenalty = -3 }},
		{"repetition zero", "repetition_penalty", func(p *sample.Params) { p.RepetitionPenalty = 0 }},
		{"bias of no token", "logit_bias", func(p *sample.Params) { p.LogitBias = map[int32]float64{10: 1} }},
		{"bias too large", "logit_bias", func(p *sample.Params) { p.LogitBias = map[int32]float64{1: 101} }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := sample.Neutral()
			if err := p.Check(10); err != nil {
				t.Fatal(err)
			}
			test.change(&p)
			var field *sample.FieldError
			if err := p.Check(10); !errors.As(err, &field) || field.Field != test.field {
				t.Errorf("got %v, want the field %s", err, test.field)
			}
		})
	}
}

func TestDefaultsOfGenerationConfig(t *testing.T) {
	p, err := sample.ParseDefaults(
		[]byte(`{"do_sample":true,"temperature":0.7,"top_p":0.95,"top_k":20,"eos_token_id":[1,2]}`))
	if err != nil || p.Temperature != .7 || p.TopP != .95 || p.TopK != 20 || p.RepetitionPenalty != 1 || p.MinP != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, _ = sample.ParseDefaults([]byte(`{"do_sample":false,"temperature":0.7}`)); p.Temperature != 0 {
		t.Errorf("do_sample false gives temperature %v", p.Temperature)
	}
	for _, bad := range []string{`{"temperature":"hot"}`, `{"temperature":9}`, `[]`, ``} {
		if _, err := sample.ParseDefaults([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// The vocabulary of the 27B.
func BenchmarkDistribution(b *testing.B) {
	g := sample.NewGenerator(3)
	logits := make([]float32, 248_320)
	for i := range logits {
		logits[i] = float32(g.Float64()*20 - 10)
	}
	greedy, usual, nucleus := sample.Neutral(), sample.Neutral(), sample.Neutral()
	greedy.Temperature = 0
	usual.TopK, usual.TopP = 20, 0.95
	nucleus.TopP = 0.5
	for name, p := range map[string]sample.Params{"greedy": greedy, "top_k 20 top_p 0.95": usual,
		"top_p alone": nucleus} {
		b.Run(name, func(b *testing.B) {
			s := sample.NewSampler(248_077)
			for b.Loop() {
				if _, err := s.Distribution(logits, p, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
