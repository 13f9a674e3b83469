package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"slipway/engine/serve"
)

// sendPatience is how long a client may take to accept one write. A laptop that slept is gone by then; the reply is
// cancelled rather than kept for nobody.
const sendPatience = 2 * time.Minute

// follow hands a reply's events to each as they come, and calls idle whenever nothing was sent for the keep-alive
// interval. The first error ends it and cancels the reply. It returns the reply's end.
func (s *Server) follow(w http.ResponseWriter, reply *serve.Reply, each func(serve.Event) error, idle func() error) (*serve.End, error) {
	control := http.NewResponseController(w)
	timer := time.NewTimer(s.opt.KeepAlive)
	defer timer.Stop()
	send := func(f func() error) error {
		control.SetWriteDeadline(time.Now().Add(sendPatience))
		if err := f(); err != nil {
			reply.Cancel(context.Canceled)
			return err
		}
		return nil
	}
	for {
		select {
		case <-reply.Ready():
			events := reply.Take()
			err := send(func() error {
				for _, event := range events {
					if err := each(event); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			if last := len(events) - 1; last >= 0 && events[last].End != nil {
				return events[last].End, nil
			}
		case <-timer.C:
			if err := send(idle); err != nil {
				return nil, err
			}
		}
		timer.Reset(s.opt.KeepAlive)
	}
}

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

func (s *Server) usageOf(end *serve.End, reasoningTokens int, notice string) *usage {
	var u usage
	u.PromptTokens = end.Usage.PromptTokens()
	u.CompletionTokens = end.Usage.CompletionTokens
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	u.PromptDetails.CachedTokens = end.Usage.CachedTokens
	u.CompletionDetails.ReasoningTokens = reasoningTokens
	u.Slipway.ComputedTokens = end.Usage.ComputedTokens
	u.Slipway.Notice, u.Slipway.Approximations = notice, s.opt.Approximations
	u.Slipway.TokenizeMs = millis(end.Times.Tokenize)
	u.Slipway.QueueMs = millis(end.Times.Queue)
	u.Slipway.PrefillMs = millis(end.Times.Prefill)
	u.Slipway.DecodeMs = millis(end.Times.Decode)
	return &u
}

// notice tells in words what a finish reason alone leaves open; it is empty where nothing needs saying.
func notice(end *serve.End, thought, answered bool) string {
	switch {
	case end.Reason == serve.FinishLength && thought && !answered:
		return fmt.Sprintf("The reply ran out of its %d tokens while still thinking, so there is no answer. Allow more tokens, or turn thinking off with chat_template_kwargs {\"enable_thinking\": false}.", end.LimitTokens)
	case end.Reason == serve.FinishStop && thought && !answered:
		return "The model ended its reply while still thinking, so there is no answer. Ask again, or turn thinking off with chat_template_kwargs {\"enable_thinking\": false}."
	case end.Reason == serve.FinishLength && end.Windowed:
		return fmt.Sprintf("The reply was cut after %d tokens because prompt and reply filled the window.", end.LimitTokens)
	}
	return ""
}
