package wire

import "time"

// The documents of /slipway/*, for the monitor and other programs that watch. They hold numbers, names and times;
// of the text of prompts and replies nothing is sent but the differing snippet of a miss, and that only where the
// server listens on loopback alone.
//
//	GET  /slipway/requests              Watching, once
//	GET  /slipway/events                server-sent events: one "snapshot", then "change" whenever something
//	                                    changed, at most four a second; the data of both is Watching, in a change
//	                                    with the changed requests alone. A comment every keep-alive interval. A
//	                                    client merges requests by id and drops the oldest ended ones beyond 64.
//	GET  /slipway/system                System
//	POST /slipway/requests/{id}/cancel  Cancelled, or 404 where no such request is under way
//	POST /slipway/reload                body {"drain": false}; Reloaded once the weights are there again, 409 while
//	                                    requests run unless drain is true (then they end first, and new ones wait)
// POST /slipway/draft body {"tokens": N}; DraftSet: tokens drafted at a time from the next request on
//
// Who may ask is the same as on every path.

// Watching is the server at one moment.
type Watching struct {
	SchemaVersion int           `json:"schema_version"` // 1
	At            time.Time     `json:"at"`
	Server        WatchedServer `json:"server"`
	Cache         *WatchedCache `json:"cache"` // null: nothing is kept between requests
	// the latest start first: those under way, and up to 64 that have ended
	Requests []*WatchedRequest `json:"requests"`
}

// WatchedServer is what is served, and how.
type WatchedServer struct {
	Model    string `json:"model"`
	Revision string `json:"revision,omitempty"`
	Profile  string `json:"profile,omitempty"` // that the settings were made of; empty where unknown
	Device   string `json:"device,omitempty"`
	// of the device: operands, version, and kernels replaced by plain ones
	Numerics      string `json:"numerics,omitempty"`
	WindowTokens  int    `json:"window_tokens"`
	PrefillPolicy string `json:"prefill_policy"` // "exact" unless an approximation was chosen
	KVFormat      string `json:"kv_format,omitempty"`
	Draft         string `json:"draft,omitempty"` // none, mtp or dflash2
	// Tokens proposed at a time, unless a request says; 0: none. Most is what the draft can.
	DraftTokens     int `json:"draft_tokens"`
	MostDraftTokens int `json:"most_draft_tokens"`

	Ready    bool `json:"ready"`
	Active   int  `json:"active"`
	Queued   int  `json:"queued"`
	Draining bool `json:"draining"`
}

// WatchedCache is what is kept between requests.
type WatchedCache struct {
	Memory WatchedTier  `json:"memory"`
	Disk   *WatchedTier `json:"disk"` // null: none
	// Prompts since the start, by where their restore point came from.
	FromMemory   int   `json:"from_memory"`
	FromDisk     int   `json:"from_disk"`
	FromNothing  int   `json:"from_nothing"`
	Saved        int   `json:"saved"`   // points
	Evicted      int   `json:"evicted"` // from memory
	Damaged      int   `json:"damaged"` // files
	WrittenBytes int64 `json:"written_bytes"`
}

// WatchedTier is where points are held. Pages that points share are counted once.
type WatchedTier struct {
	Points      int   `json:"points"`
	Bytes       int64 `json:"bytes"`
	BudgetBytes int64 `json:"budget_bytes"` // never passed
}

// WatchedRequest is one request. PromptTokens is always CachedTokens + ComputedTokens: the part dealt with so far,
// which is Prefill.DoneTokens.
type WatchedRequest struct {
	ID      string    `json:"id"`      // as in the response's X-Request-Id
	Phase   string    `json:"phase"`   // tokenize, queue, prefill, decode; done, cancelled or failed
	Started time.Time `json:"started"` // when its body was read

	PrefillPolicy string `json:"prefill_policy"` // "exact" unless an approximation was chosen

	PromptTokens     int             `json:"prompt_tokens"`
	CachedTokens     int             `json:"cached_tokens"`
	ComputedTokens   int             `json:"computed_tokens"`
	Prefill          WatchedProgress `json:"prefill"`
	CompletionTokens int             `json:"completion_tokens"`
	// the bound on the reply that is in force; 0 until it is known
	MaxTokens    int     `json:"max_tokens"`
	FinishReason *string `json:"finish_reason"` // stop, length, cancelled or error, once it has ended

	TokenizeMs float64 `json:"tokenize_ms"`
	QueueMs    float64 `json:"queue_ms"`
	PrefillMs  float64 `json:"prefill_ms"` // until the first token
	DecodeMs   float64 `json:"decode_ms"`  // from the first token on

	FirstTokenMs *float64 `json:"first_token_ms"` // from the start to the first token; null until then
	// Computed tokens over prefill_ms: what was cached makes no prefill faster. Null below 16 of them. Provisional
	// until the first token, as is what is left of prefill at this rate, null outside of prefill.
	PrefillTokensPerS *float64 `json:"prefill_tokens_per_s"`
	PrefillLeftMs     *float64 `json:"prefill_left_ms"`
	// less the first token and forced ones; null below 16; provisional until the end
	DecodeTokensPerS *float64 `json:"decode_tokens_per_s"`

	Draft      *WatchedDraft `json:"draft,omitempty"` // absent without a draft
	Recomputed *Recomputed   `json:"recomputed"`      // null where nothing is kept, and until prefill
}

// WatchedProgress is how far prefill is.
type WatchedProgress struct {
	DoneTokens int `json:"done_tokens"`
	OfTokens   int `json:"of_tokens"` // the whole prompt; 0 until it is tokenised
}

// WatchedDraft counts proposed tokens. It is absent without a draft.
type WatchedDraft struct {
	Drafted  int `json:"drafted"`
	Accepted int `json:"accepted"`

	Positions []DraftPosition `json:"positions,omitempty"` // by place in a proposal
	// of passes that verified a proposal: one and the accepted
	TokensPerPass float64 `json:"tokens_per_pass,omitempty"`
	DraftMs       float64 `json:"draft_ms,omitempty"`  // in the draft
	VerifyMs      float64 `json:"verify_ms,omitempty"` // in those passes
	Off           string  `json:"off,omitempty"`       // why no more is drafted of it
}

// DraftPosition is one place of proposals.
type DraftPosition struct {
	Drafted  int `json:"drafted"`
	Accepted int `json:"accepted"`
}

// Ended reports whether the request will not change any more.
func (r WatchedRequest) Ended() bool {
	return r.Phase == "done" || r.Phase == "cancelled" || r.Phase == "failed"
}

// Recomputed says what of a prompt was known before and computed again, and why.
type Recomputed struct {
	KnownTokens int      `json:"known_tokens"` // longest prefix that was processed before
	AgainTokens int      `json:"again_tokens"` // of that, computed again
	Because     string   `json:"because"`      // "" where nothing was, or too little to matter; see docs/caching.md
	OtherKey    []string `json:"other_key,omitempty"`

	PartedAtToken *int   `json:"parted_at_token"`  // where the prompt leaves what was known; null where it went on
	Volatile      bool   `json:"volatile"`         // the text there changes with every request
	Advice        string `json:"advice,omitempty"` // what to do about it

	Snippet *Snippet `json:"snippet,omitempty"` // where the server listens on loopback alone
}

// Snippet is where a prompt parts from what was known.
type Snippet struct {
	Before string `json:"before"`
	Old    string `json:"old"`
	New    string `json:"new"`
}

// Cancelled answers a cancel.
type Cancelled struct {
	ID        string `json:"id"`
	Cancelled bool   `json:"cancelled"`
}

// DraftSet answers a change of how many tokens are drafted at a time.
type DraftSet struct {
	Draft  string `json:"draft"`
	Tokens int    `json:"tokens"`
}

// Reloaded answers a reload.
type Reloaded struct {
	Reloaded bool    `json:"reloaded"`
	TookMs   float64 `json:"took_ms"` // the wait for running requests included
}
