// Package draft proposes tokens that the network then verifies. Package accept decides which are accepted.
package draft

import (
	"context"

	"slipway/engine/draft/accept"
	"slipway/engine/pass"
	"slipway/profiles"
)

// MostTokens is how many tokens any proposal has at most.
const MostTokens = profiles.MostDraftTokens

// Proposer drafts tokens for sequences of one network. Only one goroutine uses it and its contexts.
type Proposer interface {
	// Most is how many tokens a proposal has at most, in [1, MostTokens].
	Most() int
	// Begin follows a sequence that holds the first tokens of prompt, restored, or nothing. What the draft does not
	// know of them lowers acceptance and nothing else.
	Begin(seq pass.Sequence, prompt []int32) Context
	// Propose drafts for all asks together. Its error is a pass's.
	Propose(ctx context.Context, asks []Ask) error
}

// Context is what a draft knows of one sequence.
type Context interface {
	// Want adds to the sequence's segment of a pass what the draft needs of its rows.
	Want(segment *pass.Segment)
	// Kept reports the tokens of that segment that the sequence holds after the pass: all of a prompt's, or the
	// accepted ones after the others were rewound.
	Kept(ctx context.Context, tokens []int32) error
	// End gives back what the context holds. The sequence may go on without it.
	End()
}

// Row is the logits that a draft gives one token.
type Row struct {
	IDs    []int32   // the only tokens that it proposes; nil: the whole vocabulary
	Logits []float32 // of IDs, in their order, or [V]
}

// Ask requests draft tokens for one sequence.
type Ask struct {
	Context Context
	Last    int32 // the reply's last token, which the sequence has not processed
	Most    int   // tokens to propose, in [1, Most] of the proposer

	// Choose draws a token from the draft's logits, valid for the call: the one after Last and the tokens chosen so
	// far. more is false where none should follow it; without a token the proposal has ended before it.
	Choose func(row Row) (token *accept.Drafted, more bool)

	Drafted *[]accept.Drafted // receives the proposal, appended
}
