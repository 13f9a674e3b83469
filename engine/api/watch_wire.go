package api

import (
	"time"

	"slipway/engine/memory"
	"slipway/engine/memory/keep"
	"slipway/engine/serve"
)

// The wire types of /slipway/*, for the monitor and other programs that watch. Everything here is a number, a name or a time;
// the text of prompts and replies is never sent, but for the differing snippet of a miss, and that only where the server
// listens on loopback alone.
//
//	GET  /slipway/requests              watching, once
//	GET  /slipway/events                server-sent events: one "snapshot", then "change" whenever something changed, at most
//	                                    four a second; the data of both is watching, in a change with the changed requests
//	                                    alone. A comment every keep-alive interval. A client merges requests by id and drops
//	                                    the oldest ended ones beyond 64.
//	GET  /slipway/system                system
//	POST /slipway/requests/{id}/cancel  cancelled, or 404 where no such request is under way
//	POST /slipway/reload                body {"drain": false}; reloaded once the weights are there again, 409 while requests
//	                                    run unless drain is true (then they end first, and new ones wait)
//
// Members are only ever added. Who may ask is the guard's matter, as on every path.

// watching is the server at one moment.
type watching struct {
	SchemaVersion int               `json:"schema_version"` // 1
	At            time.Time         `json:"at"`
	Server        watchedServer     `json:"server"`
	Cache         *watchedCache     `json:"cache"`    // null: nothing is kept between requests
	Requests      []*watchedRequest `json:"requests"` // the latest start first: those under way, and up to 64 that have ended
}

type watchedServer struct {
	Model         string `json:"model"`
	Revision      string `json:"revision,omitempty"`
	Profile       string `json:"profile,omitempty"` // that the settings were made of, where the server was told
	Device        string `json:"device,omitempty"`
	Numerics      string `json:"numerics,omitempty"` // of the device: operands, version, and kernels that gave way to plain ones
	WindowTokens  int    `json:"window_tokens"`
	PrefillPolicy string `json:"prefill_policy"` // "exact" unless an approximation was chosen
	KVFormat      string `json:"kv_format,omitempty"`
	Ready         bool   `json:"ready"`
	Active        int    `json:"active"`
	Queued        int    `json:"queued"`
	Draining      bool   `json:"draining"`
}

type watchedCache struct {
	Memory watchedTier  `json:"memory"`
	Disk   *watchedTier `json:"disk"` // null: none
	// Prompts since the start, by where their restore point came from.
	FromMemory   int   `json:"from_memory"`
	FromDisk     int   `json:"from_disk"`
	FromNothing  int   `json:"from_nothing"`
	Saved        int   `json:"saved"`   // points
	Evicted      int   `json:"evicted"` // from memory
	Damaged      int   `json:"damaged"` // files
	WrittenBytes int64 `json:"written_bytes"`
}

// watchedTier is where points are held. Pages that points share are counted once.
type watchedTier struct {
	Points      int   `json:"points"`
	Bytes       int64 `json:"bytes"`
	BudgetBytes int64 `json:"budget_bytes"` // never passed
}

// watchedRequest is one request. PromptTokens is always CachedTokens + ComputedTokens: the part dealt with so far, which is
// Prefill.DoneTokens.
type watchedRequest struct {
	ID      string      `json:"id"` // as in the response's X-Request-Id
	Phase   serve.Phase `json:"phase"`
	Started time.Time   `json:"started"` // when its body was read

	PrefillPolicy string `json:"prefill_policy"` // "exact" unless an approximation was chosen

	PromptTokens     int             `json:"prompt_tokens"`
	CachedTokens     int             `json:"cached_tokens"`
	ComputedTokens   int             `json:"computed_tokens"`
	Prefill          watchedProgress `json:"prefill"`
	CompletionTokens int             `json:"completion_tokens"`
	MaxTokens        int             `json:"max_tokens"`    // the bound on the reply that is in force; 0 until it is known
	FinishReason     *string         `json:"finish_reason"` // stop, length, cancelled or error, once it has ended

	TokenizeMs float64 `json:"tokenize_ms"`
	QueueMs    float64 `json:"queue_ms"`
	PrefillMs  float64 `json:"prefill_ms"` // until the first token
	DecodeMs   float64 `json:"decode_ms"`  // from the first token on

	FirstTokenMs *float64 `json:"first_token_ms"` // from the start to the first token; null until then
	// Computed tokens over prefill_ms: what was cached makes no prefill faster. Null below 16 of them. Provisional until the
	// first token, as is what is left of prefill at this rate, null outside of prefill.
	PrefillTokensPerS *float64 `json:"prefill_tokens_per_s"`
	PrefillLeftMs     *float64 `json:"prefill_left_ms"`
	DecodeTokensPerS  *float64 `json:"decode_tokens_per_s"` // without the first token and forced ones; null below 16 others. Provisional until it has ended

	Draft      *watchedDraft `json:"draft,omitempty"` // absent without a draft
	Recomputed *recomputed   `json:"recomputed"`      // null where nothing is kept, and until prefill
}

type watchedProgress struct {
	DoneTokens int `json:"done_tokens"`
	OfTokens   int `json:"of_tokens"` // the whole prompt; 0 until it is tokenised
}

// watchedDraft counts proposed tokens. No server runs a draft yet.
type watchedDraft struct {
	Drafted  int `json:"drafted"`
	Accepted int `json:"accepted"`
}

// recomputed says what of a prompt was known before and computed again, and why.
type recomputed struct {
	KnownTokens int          `json:"known_tokens"` // longest prefix that was processed before
	AgainTokens int          `json:"again_tokens"` // of that, computed again
	Because     memory.Cause `json:"because"`      // "" where nothing was, or too little to matter; see docs/caching.md
	OtherKey    []string     `json:"other_key,omitempty"`

	PartedAtToken *int   `json:"parted_at_token"`  // where the prompt leaves what was known; null where it went on
	Volatile      bool   `json:"volatile"`         // the text there changes with every request
	Advice        string `json:"advice,omitempty"` // what to do about it

	Snippet *snippet `json:"snippet,omitempty"` // where the server listens on loopback alone
}

// snippet is where a prompt parts from what was known.
type snippet struct {
	Before string `json:"before"`
	Old    string `json:"old"`
	New    string `json:"new"`
}

type cancelled struct {
	ID        string `json:"id"`
	Cancelled bool   `json:"cancelled"`
}

type reloaded struct {
	Reloaded bool    `json:"reloaded"`
	TookMs   float64 `json:"took_ms"` // the wait for running requests included
}

// leastRateTokens is the fewest tokens that a rate is given from: over fewer, one pass that waited decides it.
const leastRateTokens = 16

func watchedOf(r serve.Record, texts bool) *watchedRequest {
	w := &watchedRequest{
		ID: r.ID, Phase: r.Phase, Started: r.Started,
		PromptTokens: r.Usage.PromptTokens(), CachedTokens: r.Usage.CachedTokens, ComputedTokens: r.Usage.ComputedTokens,
		Prefill: watchedProgress{r.Usage.PromptTokens(), r.Length}, CompletionTokens: r.Usage.CompletionTokens, MaxTokens: r.Limit,
		TokenizeMs: millis(r.Times.Tokenize), QueueMs: millis(r.Times.Queue), PrefillMs: millis(r.Times.Prefill), DecodeMs: millis(r.Times.Decode),
		Recomputed: recomputedOf(r.Report, texts),
	}
	if r.Reason != "" {
		w.FinishReason = (*string)(&r.Reason)
	}
	if r.Usage.CompletionTokens > 0 {
		first := millis(r.Times.Tokenize + r.Times.Queue + r.Times.Prefill)
		w.FirstTokenMs = &first
	}
	if r.Usage.ComputedTokens >= leastRateTokens && r.Times.Prefill > 0 {
		rate := float64(r.Usage.ComputedTokens) / r.Times.Prefill.Seconds()
		w.PrefillTokensPerS = &rate
		if r.Phase == serve.PhasePrefill {
			left := 1000 * float64(r.Length-r.Usage.PromptTokens()) / rate
			w.PrefillLeftMs = &left
		}
	}
	if later := r.Usage.CompletionTokens - r.Forced - 1; later >= leastRateTokens && r.Times.Decode > 0 {
		rate := float64(later) / r.Times.Decode.Seconds()
		w.DecodeTokensPerS = &rate
	}
	return w
}

func recomputedOf(r *keep.Report, texts bool) *recomputed {
	if r == nil {
		return nil
	}
	w := &recomputed{KnownTokens: r.Common, AgainTokens: r.Again, Because: r.Cause, OtherKey: r.Keys, Volatile: r.Volatile}
	if r.Parted != nil {
		w.PartedAtToken = &r.Parted.At
	}
	if r.Volatile {
		w.Advice = r.Change.Advice()
	}
	if texts && r.Change != nil {
		w.Snippet = &snippet{r.Change.Place, r.Change.Old, r.Change.New}
	}
	return w
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
