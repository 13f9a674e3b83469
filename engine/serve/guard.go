package serve

import (
	"fmt"
	"slices"
	"time"
)

// The guard switches drafting off for a request whose acceptance makes it slower than single steps are. Costs are
// measured in this run, as they differ between devices and models. Medians leave out what else the machine did. Steps
// of several requests are left out, as they share their time.

// Decode steps of a request after which the guard judges it: soon where it clearly loses, sooner where it has lost the
// time of several tokens, as with long blocks of which nothing is accepted; later where it is close.
const (
	guardFirst = 3
	mostLost   = 4 // tokens
	guardSoon  = 8
	guardEvery = 32
	clearLoss  = 0.85 // of the undrafted rate
)

// learnedSteps without a proposal are taken before the first one of a run, to learn their cost, and one more for each
// guardEvery steps, as the cost grows with the context.
const learnedSteps = 5

// guard knows what a decode step without a proposal costs: the latest ones.
type guard struct{ singles []time.Duration }

func (g *guard) learn(took time.Duration) {
	if g.singles = append(g.singles, took); len(g.singles) > learnedSteps {
		g.singles = slices.Delete(g.singles, 0, 1)
	}
}

// knows reports whether enough steps were seen.
func (g *guard) knows() bool { return len(g.singles) == learnedSteps }

// guarded is the guard's view of one request: its drafted steps since the last judgement.
type guarded struct {
	tokens int
	took   []time.Duration
	judged bool // once
	due    bool // a step without a proposal is next
}

// judge adds a drafted step that gave tokens, and says why drafting should end; empty: it should not.
func (r *guarded) judge(g *guard, tokens int, took time.Duration) (off string) {
	r.tokens, r.took = r.tokens+tokens, append(r.took, took)
	steps := len(r.took)
	if !g.knows() || steps < guardFirst {
		return ""
	}
	perStep := float64(r.tokens) / float64(steps)
	cost := float64(max(1, median(r.took))) / float64(max(1, median(g.singles))) // of a step, in single steps
	rate := perStep / cost                                                       // over that of single steps
	if (steps < guardSoon || r.judged && steps < guardEvery) && float64(steps)*(cost-perStep) < mostLost {
		return ""
	}
	if rate < clearLoss || rate < 1 && steps >= guardEvery {
		return fmt.Sprintf("drafting is off for this request: a pass gave %.2f tokens, at %.2f times the rate "+
			"without a draft", perStep, rate)
	}
	if steps >= guardEvery {
		*r = guarded{took: r.took[:0], judged: true, due: true}
	}
	return ""
}

func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
