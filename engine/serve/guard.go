package serve

import (
	"fmt"
	"slices"
	"time"

	"slipway/engine/draft"
)

// The guard switches drafting off for a request whose acceptance makes it slower than single steps are. Costs are
// measured in this run, as they differ between devices and models: what a step costs is remembered from request to
// request, by how many tokens were drafted, and what a request gains is its own. Steps of several requests are left
// out, as they share their time.

// When a request is judged, in drafted steps, and below which rate over that of single steps it is switched off: the
// closer it is, the later, so that chance ends little that gains a tenth, and a reply of 160 tokens loses less than
// 3 %, or 5 % where a step costs three.
const (
	guardFirst = 2
	mostLost   = 2 // tokens, or the cost of a step, from which on a request is judged early
	lostRate   = 0.92
	guardSoon  = 8
	soonRate   = 0.85
	guardClose = 16
	closeRate  = 0.97
	guardEvery = 32 // any loss
)

// learnedSteps without a proposal are taken before the first one of a run, to learn their cost, and one more for each
// guardEvery steps, as the cost grows with the context. A request is judged early only by a cost that is known as well.
// latestSteps of each kind are remembered.
const (
	learnedSteps = 5
	latestSteps  = 16
)

// guard knows what decode steps took, by how many tokens were drafted in them; 0: those without a proposal.
type guard struct {
	took [draft.MostTokens + 1][]time.Duration // the latest ones
}

func (g *guard) learn(drafted int, took time.Duration) {
	latest := append(g.took[drafted], took)
	g.took[drafted] = slices.Delete(latest, 0, max(0, len(latest)-latestSteps))
}

// knows reports whether enough steps without a proposal were seen.
func (g *guard) knows() bool { return g.knowsOf(0) }

func (g *guard) knowsOf(drafted int) bool { return len(g.took[drafted]) >= learnedSteps }

// cost is what a step takes, in steps without a proposal. Of each the time counts that a fifth of them undercut:
// on a busy machine longer steps are interrupted more often, and a median would compare interrupted ones with others.
func (g *guard) cost(drafted int) float64 {
	fast := func(drafted int) float64 {
		sorted := slices.Sorted(slices.Values(g.took[drafted]))
		return float64(max(1, sorted[len(sorted)/5]))
	}
	return fast(drafted) / fast(0)
}

// guarded is the guard's view of one request: its drafted steps since the last judgement.
type guarded struct {
	tokens int
	steps  [draft.MostTokens + 1]int // by how many tokens were drafted
	due    bool                      // a step without a proposal is next
	trial  *trial                    // of a request that seems to lose; nil: it does not
}

// A trial compares steps with and without a proposal in turn, before a request is switched off whose drafts are
// accepted: what made its steps slow may have been the machine, and the steps that they were compared with are old.
// The fastest of each count.
type trial struct {
	single, drafted time.Duration
	pairs           int
	tokens, steps   int // of the request since its last judgement
}

const (
	trialPairs = 3
	fewTokens  = 1.3 // a step: below there is little to gain, so that no trial is worth its time
)

// rests reports whether the guard wants to see a step without a proposal.
func (r *guarded) rests(g *guard) bool { return r.due || !g.knows() }

// single adds a step without a proposal.
func (r *guarded) single(g *guard, took time.Duration) {
	g.learn(0, took)
	if r.due = false; r.trial != nil && (r.trial.single == 0 || took < r.trial.single) {
		r.trial.single = took
	}
}

// judge adds a step in which tokens were drafted and the reply got some, and says why drafting should end; empty: it
// should not.
func (r *guarded) judge(g *guard, drafted, tokens int, took time.Duration) (off string) {
	g.learn(drafted, took)
	r.tokens += tokens
	r.steps[drafted]++
	if !g.knows() {
		return ""
	}
	steps, spent, known := 0, 0.0, true
	for drafted, n := range r.steps {
		if n > 0 {
			steps, spent, known = steps+n, spent+float64(n)*g.cost(drafted), known && g.knowsOf(drafted)
		}
	}
	perStep, rate := float64(r.tokens)/float64(steps), float64(r.tokens)/spent
	lost := spent-float64(r.tokens) >= max(mostLost, spent/float64(steps))
	loses := known && steps >= guardFirst && lost && rate < lostRate || steps >= guardSoon && rate < soonRate ||
		steps >= guardClose && rate < closeRate || steps >= guardEvery && rate < 1
	switch {
	case r.trial != nil:
		return r.try(tokens, took)
	case loses && perStep < fewTokens:
		return offBecause(perStep, rate)
	case loses:
		*r = guarded{due: true, trial: &trial{tokens: r.tokens, steps: steps}}
	case steps >= guardEvery:
		*r = guarded{due: true}
	}
	return ""
}

// try adds a drafted step to the trial, and ends it after the last one.
func (r *guarded) try(tokens int, took time.Duration) (off string) {
	t := r.trial
	t.pairs, t.tokens, t.steps, r.due = t.pairs+1, t.tokens+tokens, t.steps+1, true
	if t.drafted == 0 || took < t.drafted {
		t.drafted = took
	}
	if t.pairs < trialPairs {
		return ""
	}
	perStep := float64(t.tokens) / float64(t.steps)
	rate := perStep * float64(max(1, t.single)) / float64(max(1, t.drafted))
	if *r = (guarded{}); rate < 1 {
		return offBecause(perStep, rate)
	}
	return ""
}

func offBecause(perStep, rate float64) string {
	return fmt.Sprintf("drafting is off for this request: a pass gave %.2f tokens, at %.2f times the rate without a "+
		"draft", perStep, rate)
}
