package wire

// Usage is OpenAI's object with a member of ours. PromptTokens is PromptDetails.CachedTokens + Slipway.ComputedTokens.
type Usage struct {
	PromptTokens      int               `json:"prompt_tokens"`
	CompletionTokens  int               `json:"completion_tokens"`
	TotalTokens       int               `json:"total_tokens"`
	PromptDetails     PromptDetails     `json:"prompt_tokens_details"`
	CompletionDetails CompletionDetails `json:"completion_tokens_details"`
	Slipway           Spent             `json:"slipway"`
}

// PromptDetails is OpenAI's.
type PromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// CompletionDetails is OpenAI's.
type CompletionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
	// Drafted tokens that the reply took and did not take. With --draft none, both are 0.
	AcceptedPredictionTokens int `json:"accepted_prediction_tokens"`
	RejectedPredictionTokens int `json:"rejected_prediction_tokens"`
}

// Spent says where the time of a request went. Rates are left to the reader, who knows what they mean.
type Spent struct {
	ComputedTokens int      `json:"computed_tokens"`
	Notice         string   `json:"notice,omitempty"`         // sentences about the reply
	Approximations []string `json:"approximations,omitempty"` // what of the settings may have changed the answer
	TokenizeMs     float64  `json:"tokenize_ms"`
	QueueMs        float64  `json:"queue_ms"`
	PrefillMs      float64  `json:"prefill_ms"`
	DecodeMs       float64  `json:"decode_ms"`
}

// Note is what a reply says beside the answer, in its member slipway.
type Note struct {
	Notice string `json:"notice"`
}
