package measure

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"slipway/checks/client"
)

// longPromptBytes is from where a prompt is long enough to be worth a probe: about 4,000 tokens of English.
const longPromptBytes = 16 << 10

// probeBytes of the text's own beginning are read first: about 700 tokens.
const probeBytes = 3 << 10

// Forecast is what a short probe says about a long prompt. It is a lower bound where attention grows with length.
type Forecast struct {
	ProbeTokens    int       `json:"probe_tokens"`
	ProbeSeconds   float64   `json:"probe_seconds"` // client: until the first token
	TokensPerSec   float64   `json:"tokens_per_second"`
	PromptTokens   int       `json:"prompt_tokens_estimated"`
	PrefillSeconds float64   `json:"prefill_seconds_estimated"` // at least, when nothing is cached
	Exceeds        []Timeout `json:"exceeds"`
	OverWindow     int       `json:"over_window_tokens"` // the server's window where the estimate is beyond it, else 0
	Why            string    `json:"why_absent"`         // why there are no numbers
}

// Timeout is the time-out of a whole request that a client has by default.
type Timeout struct {
	Client  string  `json:"client"`
	Seconds float64 `json:"seconds"`
}

// timeouts are the documented defaults; slipway connect prints settings that raise them.
var timeouts = []Timeout{
	{"OpenCode", 300},            // opencode.ai/docs/config: provider.options.timeout
	{"OpenAI's Python SDK", 600}, // openai-python, README: default 10 minutes
	{"OpenAI's Node SDK", 600},   // openai-node, README: default 10 minutes
	{"Anthropic's SDKs", 600},    // anthropic-sdk-python, README: default 10 minutes
}

// Exceeded are the time-outs that a wait of so many seconds is longer than.
func Exceeded(seconds float64) []Timeout {
	over := []Timeout{}
	for _, t := range timeouts {
		if seconds > t.Seconds {
			over = append(over, t)
		}
	}
	return over
}

// probe reads the first part of the text, always fresh, and reckons from its rate. A fault of the server is an error.
func probe(ctx context.Context, s *client.Server, o Options) (*Forecast, error) {
	if o.Stage != nil {
		o.Stage(Stage{})
	}
	part := o.Text[:probeBytes]
	for !utf8.ValidString(part) && len(part) > probeBytes-utf8.UTFMax {
		part = part[:len(part)-1]
	}
	o.Fresh = true
	nonce := o.Nonce()
	o.Nonce = func() string { return nonce }
	reply, err := s.Chat(ctx, o.request(strings.ToValidUTF8(part, ""), 1))
	if err != nil {
		return nil, err
	}
	f := &Forecast{Exceeds: []Timeout{}}
	tokens, why := reply.CountsPrompt()
	took := reply.Ended.Sub(reply.Started)
	if at := reply.FirstPiece(); !at.IsZero() {
		took = at.Sub(reply.Started)
	}
	if reply.Usage != nil && reply.Usage.Prefill != nil {
		took = max(*reply.Usage.Prefill, time.Millisecond)
	}
	if why != "" || took <= 0 {
		f.Why = "the time for the whole prompt cannot be predicted: " + why
		return f, nil
	}
	f.ProbeTokens, f.ProbeSeconds = tokens, took.Seconds()
	f.TokensPerSec = float64(tokens) / took.Seconds()
	f.PromptTokens = int(float64(tokens) * float64(len(o.Text)) / float64(len(part)))
	f.PrefillSeconds = float64(f.PromptTokens) / f.TokensPerSec
	f.Exceeds = Exceeded(f.PrefillSeconds)
	if w := s.Details.WindowTokens; w > 0 && f.PromptTokens > w {
		f.OverWindow = w
	}
	return f, nil
}
