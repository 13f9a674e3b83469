package wire

// Names in /metrics that other programs read.
const (
	MetricPromptTokens     = "slipway_prompt_tokens_total" // MetricCachedTokens + MetricComputedTokens
	MetricCachedTokens     = "slipway_cached_tokens_total"
	MetricComputedTokens   = "slipway_computed_tokens_total"
	MetricCompletionTokens = "slipway_completion_tokens_total"
)
