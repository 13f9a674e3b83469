package serve

import (
	"fmt"
	"time"
)

// The guard switches drafting off for a request whose acceptance makes it slower than single steps are. Costs are measured in
// this run, as they differ between devices and models; passes of several requests are left out, as they share their time.

// Decode steps of a request after which the guard judges it: soon where it clearly loses, later where it is close.
const (
	guardSoon  = 8
	guardEvery = 32
	clearLoss  = 0.85 // of the undrafted rate
)

// guard knows what a decode step costs alone.
type guard struct {
	single time.Duration // running mean of a step without a proposal; 0: unknown
}

// single steps that are taken to learn their cost before the first proposal.
const learnedSteps = 4

// learn adds a step without a proposal. Steps grow with the context, so that recent ones count more.
func (g *guard) learn(took time.Duration) {
	if g.single == 0 {
		g.single = took
	}
	g.single += (took - g.single) / 4
}

// guarded is the guard's view of one request.
type guarded struct {
	singles       int // steps without a proposal
	steps, tokens int // drafted steps since the last judgement, and the tokens that they gave
	took          time.Duration
	judged        bool // once
}

// judge adds a drafted step that gave tokens, and says why drafting should end; empty: it should not.
func (r *guarded) judge(g *guard, tokens int, took time.Duration) (off string) {
	r.steps, r.tokens, r.took = r.steps+1, r.tokens+tokens, r.took+took
	if g.single == 0 || r.steps < guardSoon || r.judged && r.steps < guardEvery {
		return ""
	}
	rate := float64(g.single) * float64(r.tokens) / float64(max(1, r.took)) // over that of single steps
	if rate < clearLoss || rate < 1 && r.steps >= guardEvery {
		return fmt.Sprintf("drafting is off for this request: %d passes gave %d tokens, at %.2f times the rate without a draft", r.steps, r.tokens, rate)
	}
	if r.steps >= guardEvery {
		*r = guarded{singles: r.singles, judged: true}
	}
	return ""
}
