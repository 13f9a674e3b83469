package accept

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"slipway/engine/sample"
)

func certain(id int32) sample.Distribution {
	return sample.Distribution{IDs: []int32{id}, Probs: []float64{1}}
}

func noRandom() float64 { panic("a random number where there is no choice") }

func TestGreedyAcceptsWhileTheArgmaxesAreEqual(t *testing.T) {
	target := []int32{4, 7, 9, 2}
	at := func(i int) (sample.Distribution, error) { return certain(target[i]), nil }
	for want, ids := range [][]int32{{5, 7, 9}, {4, 8, 9}, {4, 7, 1}, {4, 7, 9}} {
		var drafted []Drafted
		for _, id := range ids {
			drafted = append(drafted, Drafted{id, certain(id)})
		}
		n, next, err := Verify(drafted, at, noRandom)
		if err != nil || n != want || next != target[want] {
			t.Errorf("%v against %v: %d accepted, then %d (%v)", ids, target, n, next, err)
		}
	}
}

func TestWithoutDraftsTheTokenIsTheTargets(t *testing.T) {
	p := sample.Distribution{IDs: []int32{3, 5}, Probs: []float64{0.25, 0.75}}
	n, next, err := Verify(nil, func(int) (sample.Distribution, error) { return p, nil }, func() float64 { return 0.5 })
	if n != 0 || next != 5 || err != nil {
		t.Errorf("%d accepted, then %d (%v)", n, next, err)
	}
}

func TestTokenOutsideTheTargetIsNeverAccepted(t *testing.T) {
	p := sample.Distribution{IDs: []int32{1, 2}, Probs: []float64{0.5, 0.5}}
	for _, q := range []sample.Distribution{{IDs: []int32{1, 3}, Probs: []float64{0.9, 0.1}}, {}} {
		n, next, _ := Verify([]Drafted{{3, q}}, func(int) (sample.Distribution, error) { return p, nil },
			func() float64 { return 0 })
		if n != 0 || next != 1 && next != 2 {
			t.Errorf("%d accepted, then %d", n, next)
		}
	}
}

func TestVerifyEndsWithTheTargetsError(t *testing.T) {
	broken := errors.New("broken")
	asked := 0
	n, _, err := Verify([]Drafted{{1, certain(1)}, {2, certain(2)}}, func(i int) (sample.Distribution, error) {
		asked++
		if i == 1 {
			return sample.Distribution{}, broken
		}
		return certain(1), nil
	}, noRandom)
	if n != 1 || err != broken || asked != 2 {
		t.Errorf("%d accepted, %v, after %d targets", n, err, asked)
	}
}

// Every token's probability after the rule is worked out exactly, by integrating over a fine grid of random numbers.
func TestVerifiedTokenIsDistributedAsTheTarget(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func(n int) (d sample.Distribution) {
		ids := r.Perm(8)[:n]
		total := 0.0
		for _, id := range ids {
			d.IDs, d.Probs = append(d.IDs, int32(id)), append(d.Probs, r.Float64()+0.01)
			total += d.Probs[len(d.Probs)-1]
		}
		for i := range d.Probs {
			d.Probs[i] /= total
		}
		return d
	}
	const grid = 400
	for range 50 {
		p, q := random(1+r.IntN(7)), random(1+r.IntN(7))
		got := map[int32]float64{}
		for i, drafted := range q.IDs {
			for u := range grid {
				for v := range 20 {
					numbers := []float64{(float64(u) + 0.5) / grid, (float64(v) + 0.5) / 20}
					n, next, _ := Verify([]Drafted{{drafted, q}}, func(i int) (sample.Distribution, error) {
						return []sample.Distribution{p, certain(0)}[i], nil
					}, func() float64 { x := numbers[0]; numbers = numbers[1:]; return x })
					if n == 1 {
						next = drafted
					}
					got[next] += q.Probs[i] / grid / 20
				}
			}
		}
		for id := range int32(8) {
			if d := got[id] - p.Prob(id); d > 0.03 || d < -0.03 {
				t.Fatalf("token %d has probability %.3f, its target's is %.3f (p %v, q %v)", id, got[id], p.Prob(id), p,
					q)
			}
		}
	}
}

func TestRateIsHowOftenADraftIsAccepted(t *testing.T) {
	p := sample.Distribution{IDs: []int32{1, 2, 3}, Probs: []float64{0.5, 0.3, 0.2}}
	q := sample.Distribution{IDs: []int32{2, 3, 4}, Probs: []float64{0.6, 0.1, 0.3}}
	g := sample.NewGenerator(3)
	hits, tries := 0, 200_000
	for range tries {
		id := q.Pick(g.Float64())
		n, next, _ := Verify([]Drafted{{id, q}}, func(i int) (sample.Distribution, error) { return p, nil }, g.Float64)
		hits += n
		if n == 0 && !slices.Contains([]int32{1, 3}, next) {
			t.Fatalf("token %d after a rejection: the residual holds 1 and 3", next)
		}
	}
	if got, want := float64(hits)/float64(tries), Rate(p, q); got < want-0.005 || got > want+0.005 || want < 0.399 ||
		want > 0.401 {
		t.Errorf("%.4f of the drafts were accepted, wanted %.4f", got, want)
	}
}
