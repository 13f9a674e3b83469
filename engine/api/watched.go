package api

import (
	"time"

	"slipway/engine/memory/keep"
	"slipway/engine/serve"
	"slipway/wire"
)

// leastRateTokens is the fewest tokens that a rate is given from: over fewer, one pass that waited decides it.
const leastRateTokens = 16

func watchedOf(r serve.Record, texts bool) *wire.WatchedRequest {
	w := &wire.WatchedRequest{
		ID: r.ID, Phase: string(r.Phase), Started: r.Started,
		PromptTokens: r.Usage.PromptTokens(), CachedTokens: r.Usage.CachedTokens,
		ComputedTokens:   r.Usage.ComputedTokens,
		Prefill:          wire.WatchedProgress{DoneTokens: r.Usage.PromptTokens(), OfTokens: r.Length},
		CompletionTokens: r.Usage.CompletionTokens, MaxTokens: r.Limit,
		TokenizeMs: millis(r.Times.Tokenize), QueueMs: millis(r.Times.Queue), PrefillMs: millis(r.Times.Prefill),
		DecodeMs:   millis(r.Times.Decode),
		Recomputed: recomputedOf(r.Report, texts),
	}
	w.Draft = draftOf(&r.Usage.Drafts)
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

// draftOf is nil where nothing was drafted.
func draftOf(d *serve.Drafts) *wire.WatchedDraft {
	if d.Passes == 0 {
		return nil
	}
	w := &wire.WatchedDraft{Drafted: d.Drafted(), Accepted: d.Accepted(), DraftMs: millis(d.Propose),
		VerifyMs: millis(d.Verify), Off: d.Off}
	w.TokensPerPass = float64(d.Passes+w.Accepted) / float64(d.Passes)
	for _, p := range d.At {
		if p.Drafted > 0 {
			w.Positions = append(w.Positions, wire.DraftPosition(p))
		}
	}
	return w
}

func recomputedOf(r *keep.Report, texts bool) *wire.Recomputed {
	if r == nil {
		return nil
	}
	w := &wire.Recomputed{KnownTokens: r.Common, AgainTokens: r.Again, Because: string(r.Cause), OtherKey: r.Keys,
		Volatile: r.Volatile}
	if r.Difference != nil {
		w.PartedAtToken = &r.Difference.At
	}
	if r.Volatile {
		w.Advice = r.Change.Advice()
	}
	if texts && r.Change != nil {
		w.Snippet = &wire.Snippet{Before: r.Change.Place, Old: r.Change.Old, New: r.Change.New}
	}
	return w
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
