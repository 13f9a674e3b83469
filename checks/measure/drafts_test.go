package measure

import (
	"math"
	"testing"

	"slipway/checks/client"
)

// Two texts of 101 and 51 tokens. With one drafted token passes are dearer and a third is accepted; with two nothing is
// gained.
func TestSweepChoosesTheFastestNumberOfTokens(t *testing.T) {
	o := SweepOptions{Texts: []SweepText{{Name: "a"}, {Name: "b"}}, Rounds: 3}
	seen := [][]swept{
		{{seconds: []float64{10, 20, 10}, tokens: 101, answer: "x", same: true},
			{seconds: []float64{5, 10, 5}, tokens: 51, answer: "y", same: true}},
		{{seconds: []float64{8, 16, 20}, tokens: 101, accepted: 50, rejected: 10, answer: "x", same: true},
			{seconds: []float64{4, 8, 10}, tokens: 51, accepted: 10, rejected: 30, answer: "z", same: true}},
		{{seconds: []float64{11, 22, 11}, tokens: 101, accepted: 60, rejected: 40, answer: "x", same: true},
			{seconds: []float64{5, 10, 5}, tokens: 51, accepted: 20, rejected: 60, answer: "y", same: false}},
	}
	s := o.sweep(client.Identity{Draft: "mtp", DraftTokens: 2}, seen)
	if s.Best != 1 || s.InForce != 2 || len(s.Rows) != 3 {
		t.Fatalf("%+v", s)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("the gain of the median round", s.Rows[1].Gain, 1.25)
	near("the undrafted gain", s.Rows[0].Gain, 1)
	near("tokens a pass", s.Rows[1].TokensPerPass, 150.0/90)
	near("acceptance", *s.Rows[1].Acceptance, 0.6)
	near("the undrafted rate", s.Rows[0].Rate, 6/(2*(0.1+0.2+0.1)))
	near("the gain of text a", s.Rows[1].Texts[0].Gain, 10.0/16)
	if s.Rows[0].Acceptance != nil || !s.Rows[1].Texts[0].Same || s.Rows[1].Texts[1].Same || s.Rows[2].Texts[1].Same {
		t.Errorf("%+v", s.Rows)
	}
}

func TestSweepKeepsNoDraftThatGainsLittle(t *testing.T) {
	o := SweepOptions{Texts: []SweepText{{Name: "a"}}, Rounds: 1}
	seen := [][]swept{{{seconds: []float64{1}, tokens: 101}}, {{seconds: []float64{0.98}, tokens: 101}}}
	if s := o.sweep(client.Identity{}, seen); s.Best != 0 {
		t.Errorf("a gain of %.3f is kept", s.Rows[1].Gain)
	}
}
