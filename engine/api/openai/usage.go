package openai

import (
	"time"

	"slipway/engine/api/turn"
	"slipway/wire"
)

func usageOf(end *turn.End, notice string) *wire.Usage {
	var u wire.Usage
	u.PromptTokens = end.Usage.PromptTokens()
	u.CompletionTokens = end.Usage.CompletionTokens
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	u.PromptDetails.CachedTokens = end.Usage.CachedTokens
	u.CompletionDetails.ReasoningTokens = end.ReasoningTokens
	u.CompletionDetails.AcceptedPredictionTokens = end.Usage.Drafts.Accepted()
	u.CompletionDetails.RejectedPredictionTokens = end.Usage.Drafts.Drafted() - end.Usage.Drafts.Accepted()
	u.Slipway.ComputedTokens = end.Usage.ComputedTokens
	u.Slipway.Notice, u.Slipway.Approximations = notice, end.Approximations
	u.Slipway.TokenizeMs = millis(end.Times.Tokenize)
	u.Slipway.QueueMs = millis(end.Times.Queue)
	u.Slipway.PrefillMs = millis(end.Times.Prefill)
	u.Slipway.DecodeMs = millis(end.Times.Decode)
	return &u
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
