package openai

import (
	"slipway/engine/api/turn"
	"slipway/engine/api/web"
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
	u.Slipway = web.SpentOf(end, notice)
	return &u
}
