package sample_test

import (
	"math"
	"slices"
	"sort"
	"testing"

	"slipway/engine/sample"
)

// topOf is what a device gives: the k largest of a row, none of a row with a NaN.
func topOf(logits []float32, k int) sample.Top {
	var order []int32
	for i, v := range logits {
		if v != v {
			order = nil
			break
		}
		order = append(order, int32(i))
	}
	sort.SliceStable(order, func(i, j int) bool { return logits[order[i]] > logits[order[j]] })
	top := sample.Top{IDs: order[:min(k, len(order))]}
	for _, id := range top.IDs {
		top.Logits = append(top.Logits, logits[id])
	}
	for len(top.IDs) < k {
		top.IDs, top.Logits = append(top.IDs, -1), append(top.Logits, float32(math.NaN()))
	}
	return top
}

func TestChoiceOfTheDeviceIsThatOfTheWholeRow(t *testing.T) {
	const vocab, rows = 300, 320 // 20 rows of padding
	g := sample.NewGenerator(5)
	a, b := sample.NewSampler(vocab), sample.NewSampler(vocab)
	decided, padded := 0, 0
	for round := range 4000 {
		logits := make([]float32, rows)
		for i := range logits {
			logits[i] = float32(math.Round(g.Float64()*40)/4 - 5) // many equal ones
		}
		if round%3 > 0 {
			for i := vocab; i < rows; i++ {
				logits[i] -= 20
			}
		}
		if round%5 == 0 {
			for i := range logits {
				if g.Float64() < 0.97 {
					logits[i] = float32(math.Inf(-1))
				}
			}
		}
		p := sample.Neutral()
		p.Temperature = []float64{0, 0.3, 0.7, 1, 2}[g.Uint64()%5]
		p.TopK = int([]uint64{0, 1, 5, 20, 32, 33, 500}[g.Uint64()%7])
		p.TopP = []float64{1, 0.95, 0.4, 1e-9}[g.Uint64()%4]
		p.MinP = []float64{0, 0.05, 1}[g.Uint64()%3]
		k := p.TopWanted()
		if p.Temperature == 0 && k != 1 || p.Temperature > 0 && (p.TopK <= sample.MostTop && k != p.TopK ||
			p.TopK > sample.MostTop && k != 0) {
			t.Fatalf("%+v wants %d", p, k)
		}
		got, ok := a.DistributionOfTop(topOf(logits, max(k, int(g.Uint64()%40))), p)
		if !ok {
			if k > 0 {
				padded++
			}
			continue
		}
		want, err := b.Distribution(logits, p, nil, nil)
		if err != nil || !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.Probs, want.Probs) {
			t.Fatalf("%+v: %v\ngot  %+v\nwant %+v", p, err, got, want)
		}
		decided++
	}
	if decided < 1000 || padded < 100 {
		t.Errorf("%d rows decided, %d not for what is in them", decided, padded)
	}
}

func TestChoiceThatTheTopAloneCannotMakeIsLeftToTheRow(t *testing.T) {
	greedy := sample.Neutral()
	greedy.Temperature = 0
	s := sample.NewSampler(3)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, top := range map[string]sample.Top{
		"nothing chosen": {}, "all NaN": topOf([]float32{nan, nan, nan}, 1), "a NaN beside numbers": topOf(
			[]float32{1, 2, nan}, 1), "infinite": topOf([]float32{1, inf, 0}, 1),
		"nothing allowed": topOf([]float32{-inf, -inf, -inf}, 1), "padding": topOf([]float32{1, 2, 0, 9}, 1),
	} {
		if d, ok := s.DistributionOfTop(top, greedy); ok {
			t.Errorf("%s: %+v", name, d)
		}
	}
	for name, change := range map[string]func(*sample.Params){
		"bias":       func(p *sample.Params) { p.LogitBias = map[int32]float64{1: -5} },
		"presence":   func(p *sample.Params) { p.PresencePenalty = 1 },
		"repetition": func(p *sample.Params) { p.RepetitionPenalty = 1.1 },
	} {
		p := greedy
		change(&p)
		if _, ok := s.DistributionOfTop(topOf([]float32{1, 2, 0}, 3), p); ok || p.TopWanted() != 0 {
			t.Errorf("%s is passed over", name)
		}
	}
}

// Beside BenchmarkDistribution, of the same row.
func BenchmarkDistributionOfTop(b *testing.B) {
	g := sample.NewGenerator(3)
	logits := make([]float32, 248_320)
	for i := range logits {
		logits[i] = float32(g.Float64()*20 - 10)
	}
	p := sample.Neutral()
	p.TopK, p.TopP = 20, 0.95
	s, top := sample.NewSampler(248_077), topOf(logits, 20)
	for b.Loop() {
		if _, ok := s.DistributionOfTop(top, p); !ok {
			b.Fatal("not decided")
		}
	}
}
