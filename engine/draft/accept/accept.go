// Package accept decides which drafted tokens a reply takes, so that the reply is distributed as it is without a draft.
//
// The rule is speculative sampling (Leviathan et al. 2023, arXiv 2211.17192; Chen et al. 2023, arXiv 2302.01318): a
// token d that was drawn from q is accepted with probability min(1, p(d)/q(d)); after a rejection the token is drawn
// from normalise(max(p-q, 0)). Summed over d, the token is then distributed as p, whatever q is. A q near p only raises
// how many tokens are accepted. At temperature 0 both distributions are one token, and the rule is equality.
package accept

import "slipway/engine/sample"

// Drafted is a proposed token and the distribution that it was drawn from, which was processed as the target's is:
// penalties, bias, mask, temperature and truncation. A q of one token proposes that token with certainty.
type Drafted struct {
	ID int32
	Q  sample.Distribution
}

// Verify gives how many of the drafted tokens are accepted, and the token after them: the residual's after a
// rejection, the target's own after the last. target(i) gives the target's distribution for the token that follows the
// first i drafted ones, with those in its history. It is asked in order for 0, 1, ... up to the accepted length, and
// its result is used only until the next call. random gives numbers in [0, 1), asked for only where there is a choice.
// The error is target's.
func Verify(drafted []Drafted, target func(i int) (sample.Distribution, error), random func() float64) (accepted int,
	next int32, err error) {
	for i, d := range drafted {
		p, err := target(i)
		if err != nil {
			return i, 0, err
		}
		pd, qd := p.Prob(d.ID), d.Q.Prob(d.ID)
		if pd < qd && (pd == 0 || random()*qd >= pd) || pd == 0 {
			return i, pick(residual(p, d.Q), random), nil
		}
	}
	p, err := target(len(drafted))
	if err != nil {
		return len(drafted), 0, err
	}
	return len(drafted), pick(p, random), nil
}

// Rate is the probability that a token drawn from q is accepted: Σ min(p, q).
func Rate(p, q sample.Distribution) (rate float64) {
	of := byID(q)
	for i, id := range p.IDs {
		rate += min(p.Probs[i], of[id])
	}
	return rate
}

// pick draws from a distribution. Of one token it is that, without a random number.
func pick(d sample.Distribution, random func() float64) int32 {
	if len(d.IDs) == 1 {
		return d.IDs[0]
	}
	return d.Pick(random())
}

// residual is normalise(max(p-q, 0)), in p's order. Where p exceeds q nowhere by more than rounding, it is p.
func residual(p, q sample.Distribution) sample.Distribution {
	of := byID(q)
	var r sample.Distribution
	total := 0.0
	for i, id := range p.IDs {
		if left := p.Probs[i] - of[id]; left > 0 {
			r.IDs, r.Probs = append(r.IDs, id), append(r.Probs, left)
			total += left
		}
	}
	if total <= 0 {
		return p
	}
	for i := range r.Probs {
		r.Probs[i] /= total
	}
	return r
}

func byID(d sample.Distribution) map[int32]float64 {
	m := make(map[int32]float64, len(d.IDs))
	for i, id := range d.IDs {
		m[id] = d.Probs[i]
	}
	return m
}
