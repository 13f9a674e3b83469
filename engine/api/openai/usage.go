package openai

import (
	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/wire"
)

// usageOf gives the usage of replies to one prompt, which counts once.
func usageOf(ends []*turn.End, notice string) *wire.Usage {
	end := ends[0]
	var u wire.Usage
	u.PromptTokens = end.Usage.PromptTokens()
	u.PromptDetails.CachedTokens = end.Usage.CachedTokens
	for _, e := range ends {
		u.CompletionTokens += e.Usage.CompletionTokens
		u.CompletionDetails.ReasoningTokens += e.ReasoningTokens
		u.CompletionDetails.AcceptedPredictionTokens += e.Usage.Drafts.Accepted()
		u.CompletionDetails.RejectedPredictionTokens += e.Usage.Drafts.Drafted() - e.Usage.Drafts.Accepted()
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	u.Slipway = web.SpentOf(end, notice)
	return &u
}
