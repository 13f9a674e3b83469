package serve

import (
	"time"

	"slipway/engine/memory/keep"
	"slipway/engine/sample"
)

// Request is one prompt and how to continue it.
type Request struct {
	ID     string
	Prompt []int32
	Marks  keep.Marks // places of Prompt that later prompts will continue from

	// Opening are the reply's first tokens where the caller forces them (the opening of a tool call). They are streamed
	// and counted as the reply's.
	Opening []int32

	MaxTokens int // the most tokens of the reply, Opening included; 0 means as many as the window has room for
	Sampling  sample.Params
	Seed      uint64

	// Mask gives the tokens that may follow reply (Opening included), or nil for all. It may be nil itself.
	Mask func(reply []int32) sample.Mask

	TopLogprobs int // likeliest tokens to report a token; 0 reports the chosen one alone, negative reports none

	// DraftTokens is how many tokens a draft proposes at a time, at most as many as it can; then the guard does not
	// judge it. 0: as the engine is set; NoDraft: none.
	DraftTokens int

	Stop []string // texts that end the reply and are not part of it; found across token borders
	Text Decoder  // the reply's own text stream

	// Watch reports that the reply is over with this text (the end of Event.Text so far), as an end token would; nil
	// never ends one. It is called once for each token of which text may come, with the reason when the reply ends by
	// itself, and an empty one before. Only Run's goroutine calls it. What Text gave is sent whole: the reader cuts it
	// where Watch meant.
	Watch func(text string, reason FinishReason) (over bool)

	Tokenize time.Duration // already spent on making Prompt
	Entry    *Entry        // from [Ledger.Open], with its context; nil: Submit opens one
}

// NoDraft is Request.DraftTokens of a reply whose tokens are computed one by one.
const NoDraft = -1

// Decoder turns a reply's ids into text, whole characters only.
type Decoder interface {
	Push(id int32) string
	Flush() string
}

// Usage counts a request's tokens. The prompt is what was taken from cache plus what was computed, by construction; for
// a request that ended during prefill it is the part processed so far.
type Usage struct {
	CachedTokens     int // restored, not computed
	ComputedTokens   int // prompt tokens that went through the network
	CompletionTokens int // tokens of the reply, end token included
	Drafts           Drafts
}

// PromptTokens is CachedTokens + ComputedTokens.
func (u Usage) PromptTokens() int { return u.CachedTokens + u.ComputedTokens }

// Times splits a request's wall clock. Phases that were not reached are 0.
type Times struct {
	Tokenize time.Duration
	Queue    time.Duration // submitted until started
	Prefill  time.Duration // started until the first token, including waits for other requests' passes
	Decode   time.Duration // first token until the end
}

// FinishReason says why a reply ended.
type FinishReason string

const (
	FinishStop      FinishReason = "stop"      // an end token or a stop text
	FinishLength    FinishReason = "length"    // MaxTokens or the window
	FinishCancelled FinishReason = "cancelled" // the request's context ended
	FinishError     FinishReason = "error"     // see End.Err
)

// End is the last event of every reply.
type End struct {
	Reason FinishReason
	Err    error // why Reason is FinishError; the context's cause where it is FinishCancelled
	Usage  Usage
	Times  Times

	// LimitTokens is the bound on the reply: MaxTokens, or what the window had room for.
	LimitTokens int
	Windowed    bool // it ended because prompt and reply filled the window, not because of MaxTokens
}

// Token is one token of a reply.
type Token struct {
	ID      int32
	Forced  bool             // from Opening: not chosen by the network
	Logprob sample.Logprob   // meaningful where logprobs were asked for and the token is not forced
	Top     []sample.Logprob // likeliest first
}

// Event is what happened to a reply: a token with the text that became certain with it (often none), or the end with
// the text that was held until then.
type Event struct {
	Token *Token
	Text  string
	End   *End
}

// Summary is a finished request, for logs and counters.
type Summary struct {
	ID     string
	Length int // tokens of the whole prompt, processed or not
	End
	Report *keep.Report // what was known of the prompt; nil without a cache. Its texts are not for logs
}
