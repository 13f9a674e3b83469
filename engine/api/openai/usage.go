package openai

import (
	"time"

	"slipway/engine/api/turn"
)

// usage is OpenAI's object; slipway adds where the time went. Rates are left to the reader, who knows what they mean.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	PromptDetails    struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Slipway struct {
		ComputedTokens int      `json:"computed_tokens"`
		Notice         string   `json:"notice,omitempty"`
		Approximations []string `json:"approximations,omitempty"`
		TokenizeMs     float64  `json:"tokenize_ms"`
		QueueMs        float64  `json:"queue_ms"`
		PrefillMs      float64  `json:"prefill_ms"`
		DecodeMs       float64  `json:"decode_ms"`
	} `json:"slipway"`
}

func usageOf(end *turn.End, notice string) *usage {
	var u usage
	u.PromptTokens = end.Usage.PromptTokens()
	u.CompletionTokens = end.Usage.CompletionTokens
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	u.PromptDetails.CachedTokens = end.Usage.CachedTokens
	u.CompletionDetails.ReasoningTokens = end.ReasoningTokens
	u.Slipway.ComputedTokens = end.Usage.ComputedTokens
	u.Slipway.Notice, u.Slipway.Approximations = notice, end.Approximations
	u.Slipway.TokenizeMs = millis(end.Times.Tokenize)
	u.Slipway.QueueMs = millis(end.Times.Queue)
	u.Slipway.PrefillMs = millis(end.Times.Prefill)
	u.Slipway.DecodeMs = millis(end.Times.Decode)
	return &u
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
