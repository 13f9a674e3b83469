package client

import (
	"encoding/json"
	"fmt"
	"slipway/wire"
	"time"
)

// Usage is what the server says it counted and measured. A pointer is nil where it does not say.
type Usage struct {
	Prompt     int            `json:"prompt_tokens"`
	Completion int            `json:"completion_tokens"`
	Total      *int           `json:"total_tokens"`
	Cached     *int           `json:"cached_tokens"`
	Computed   *int           `json:"computed_tokens"`
	Reasoning  *int           `json:"reasoning_tokens"`
	Accepted   int            `json:"accepted_prediction_tokens"` // of a draft; 0 where none is told
	Rejected   int            `json:"rejected_prediction_tokens"`
	Queue      *time.Duration `json:"-"`
	Prefill    *time.Duration `json:"-"`
	Decode     *time.Duration `json:"-"`
	Notice     string         `json:"-"`
}

// timings are llama.cpp's: the prompt's tokens that were read now, those from its cache, and both rates' times.
type timings struct {
	Cache       *int     `json:"cache_n"`
	Prompt      *int     `json:"prompt_n"`
	PromptMs    *float64 `json:"prompt_ms"`
	PredictedMs *float64 `json:"predicted_ms"`
}

// readUsage understands OpenAI's object, with what our server and llama.cpp add. nil where there is none.
func readUsage(raw json.RawMessage, more *timings) *Usage {
	var read *struct {
		Prompt     *int `json:"prompt_tokens"`
		Completion *int `json:"completion_tokens"`
		Total      *int `json:"total_tokens"`
		Details    *struct {
			Cached *int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails *struct {
			Reasoning *int `json:"reasoning_tokens"`
			Accepted  int  `json:"accepted_prediction_tokens"`
			Rejected  int  `json:"rejected_prediction_tokens"`
		} `json:"completion_tokens_details"`
		Slipway *wire.Spent `json:"slipway"` // ours only
	}
	if len(raw) == 0 || json.Unmarshal(raw, &read) != nil || read == nil || read.Prompt == nil ||
		read.Completion == nil {
		return nil
	}
	u := &Usage{Prompt: *read.Prompt, Completion: *read.Completion, Total: read.Total}
	if read.Details != nil {
		u.Cached = read.Details.Cached
	}
	if read.CompletionDetails != nil {
		d := read.CompletionDetails
		u.Reasoning, u.Accepted, u.Rejected = d.Reasoning, d.Accepted, d.Rejected
	}
	if o := read.Slipway; o != nil {
		u.Computed, u.Notice = &o.ComputedTokens, o.Notice
		u.Queue, u.Prefill, u.Decode = milliseconds(&o.QueueMs), milliseconds(&o.PrefillMs), milliseconds(&o.DecodeMs)
	}
	if more != nil {
		if u.Cached == nil {
			u.Cached = more.Cache
		}
		if u.Computed == nil {
			u.Computed = more.Prompt
		}
		if u.Prefill == nil {
			u.Prefill, u.Decode = milliseconds(more.PromptMs), milliseconds(more.PredictedMs)
		}
	}
	return u
}

func milliseconds(ms *float64) *time.Duration {
	if ms == nil || *ms < 0 || *ms > 1e10 {
		return nil
	}
	d := time.Duration(*ms * float64(time.Millisecond))
	return &d
}

// Doubts are the contradictions in what the server counted, in clauses. A number in one of them is not used.
func (r *Reply) Doubts() []Doubt {
	u := r.Usage
	if u == nil {
		return nil
	}
	var all []Doubt
	doubt := func(about, format string, args ...any) {
		all = append(all, Doubt{About: about, Why: fmt.Sprintf(format, args...)})
	}
	if u.Prompt <= 0 || u.Completion < 0 {
		doubt(AboutPrompt, "the server counted %d tokens of prompt and %d of answer", u.Prompt, u.Completion)
	}
	switch {
	case u.Cached != nil && (*u.Cached > u.Prompt || *u.Cached < 0):
		doubt(AboutPrompt, "the server says that %d of %d tokens of the prompt were cached", *u.Cached, u.Prompt)
	case u.Cached != nil && u.Computed != nil && *u.Cached+*u.Computed != u.Prompt:
		doubt(AboutPrompt, "the server says %d tokens of prompt, but %d cached and %d computed make %d", u.Prompt,
			*u.Cached, *u.Computed, *u.Cached+*u.Computed)
	}
	if u.Total != nil && *u.Total != u.Prompt+u.Completion {
		doubt(AboutCompletion, "the server says %d tokens in all, but %d of prompt and %d of answer make %d", *u.Total,
			u.Prompt, u.Completion, u.Prompt+u.Completion)
	}
	if r.Asked.MaxTokens > 0 && u.Completion > r.Asked.MaxTokens {
		doubt(AboutCompletion, "the server says that the answer has %d tokens, where at most %d were asked for",
			u.Completion, r.Asked.MaxTokens)
	}
	pieces, bytes := 0, 0
	for _, p := range r.Pieces {
		if !p.IsCall {
			pieces++
		}
		bytes += p.Bytes
	}
	for _, c := range r.Calls {
		bytes += len(c.Function.Name) + len(c.Function.Arguments)
	}
	if r.Whole && r.Streamed && pieces > u.Completion {
		doubt(AboutCompletion, "the server says that the answer has %d tokens, but it came in %d pieces of text",
			u.Completion, pieces)
	}
	// A token of text has at least a byte. Beside the text there are tokens that are not shown: ends, marks of thinking
	// and of calls; and thinking itself where a server hides it and counts it.
	hidden := 32 + 64*len(r.Calls)
	if u.Reasoning != nil {
		hidden += *u.Reasoning
	}
	if r.Whole && u.Completion > bytes+hidden {
		doubt(AboutCompletion, "the server says that the answer has %d tokens, but only %d bytes of it came",
			u.Completion, bytes)
	}
	return all
}

// What a doubt is about.
const (
	AboutPrompt     = "prompt"
	AboutCompletion = "completion"
)

// Doubt is one contradiction.
type Doubt struct {
	About string `json:"about"`
	Why   string `json:"why"`
}

// CountsAnswer reports whether the answer's token count can be used, and if not, why.
func (r *Reply) CountsAnswer() (tokens int, why string) { return r.counts(AboutCompletion) }

// CountsPrompt is the same for the prompt.
func (r *Reply) CountsPrompt() (tokens int, why string) { return r.counts(AboutPrompt) }

func (r *Reply) counts(about string) (int, string) {
	if r.Usage == nil {
		return 0, "the server gave no usage"
	}
	for _, d := range r.Doubts() {
		if d.About == about {
			return 0, d.Why
		}
	}
	if about == AboutPrompt {
		return r.Usage.Prompt, ""
	}
	return r.Usage.Completion, ""
}
