package serve

import (
	"time"

	"slipway/engine/draft"
)

// Drafts counts what was drafted of a reply.
type Drafts struct {
	Passes int                        // of the network, each of which verified a proposal
	At     [draft.MostTokens]Position // by place in the proposal
	Off    string                     // why no more is drafted, a sentence; empty: it is

	Propose, Verify time.Duration // of decode steps with a proposal, shared with the other requests of the step
}

// Position is one place of proposals: how often it was drafted, and accepted.
type Position struct{ Drafted, Accepted int }

// Drafted is how many tokens were drafted.
func (d *Drafts) Drafted() (n int) {
	for _, p := range d.At {
		n += p.Drafted
	}
	return n
}

// Accepted is how many of them were accepted.
func (d *Drafts) Accepted() (n int) {
	for _, p := range d.At {
		n += p.Accepted
	}
	return n
}

// Add adds what was drafted of another reply; Off stays.
func (d *Drafts) Add(other Drafts) {
	d.Passes += other.Passes
	for i, p := range other.At {
		d.At[i].Drafted += p.Drafted
		d.At[i].Accepted += p.Accepted
	}
	d.Propose, d.Verify = d.Propose+other.Propose, d.Verify+other.Verify
}

// count adds a verified proposal.
func (d *Drafts) count(drafted, accepted int, propose, verify time.Duration) {
	d.Passes++
	for i := range drafted {
		d.At[i].Drafted++
		if i < accepted {
			d.At[i].Accepted++
		}
	}
	d.Propose, d.Verify = d.Propose+propose, d.Verify+verify
}

// DraftTokens is how many tokens are proposed at a time where a request does not say; 0: none.
func (e *Engine) DraftTokens() int { return int(e.draftTokens.Load()) }

// MostDraftTokens is how many can be proposed at a time; 0: nothing drafts.
func (e *Engine) MostDraftTokens() int {
	if e.opt.Draft == nil {
		return 0
	}
	return e.opt.Draft.Most()
}

// SetDraftTokens sets how many tokens are proposed at a time for requests admitted from now on, in
// [0, MostDraftTokens]; false: n is beyond that. Any goroutine may call it.
func (e *Engine) SetDraftTokens(n int) bool {
	if n < 0 || n > e.MostDraftTokens() {
		return false
	}
	e.draftTokens.Store(int64(n))
	return true
}

// draftTokensOf is how many tokens are proposed at a time for a request.
func (e *Engine) draftTokensOf(r *Request) int {
	switch {
	case r.DraftTokens == NoDraft:
		return 0
	case r.DraftTokens == 0:
		return e.DraftTokens()
	}
	return min(r.DraftTokens, e.MostDraftTokens())
}
