package turn

import (
	"fmt"
	"strings"

	"slipway/engine/serve"
)

// Finish says why a complete reply ended.
type Finish int

const (
	FinishStop   Finish = iota // an end token or a stop text
	FinishLength               // MaxTokens or the window
	FinishCalls                // it ends with complete tool calls
)

// End is what is known of a reply when it has ended.
type End struct {
	Failure         *Error // not nil: the reply is not complete
	Usage           serve.Usage
	Times           serve.Times
	ReasoningTokens int
	// Approximations are what of the server's settings may have changed the answer; nil: nothing.
	Approximations []string

	reason      serve.FinishReason
	limitTokens int
	windowed    bool // prompt and reply filled the window
	calls       int  // complete
	begun       int  // calls whose opening was sent
	unfinished  bool // it ended inside a call
	thought     bool // there was thinking
	answered    bool // there was content or a call
	normalized  int  // places of the prompt that rules changed
	thinkingOff string
}

// Finish gives the reason of a complete reply. A stream that has begun a call and not finished it never says
// FinishCalls.
func (e *End) Finish(streamed bool) Finish {
	switch {
	case e.reason == serve.FinishLength:
		return FinishLength
	case e.calls > 0 && !(streamed && e.begun > e.calls):
		return FinishCalls
	}
	return FinishStop
}

// Notice says in sentences what the finish reason leaves open; empty where nothing needs saying.
func (e *End) Notice(streamed bool) string {
	notice := e.why(streamed)
	if e.normalized == 0 {
		return notice
	}
	what := "1 place"
	if e.normalized > 1 {
		what = fmt.Sprintf("%d places", e.normalized)
	}
	return strings.TrimSpace(fmt.Sprintf("%s The server's normalize rules replaced %s in the system message, "+
		"to keep it stable.", notice, what))
}

func (e *End) why(streamed bool) string {
	if e.unfinished {
		what := "it is left out"
		if streamed && e.begun > e.calls {
			what = "its arguments are not whole and it must not be run"
		}
		if e.reason == serve.FinishLength {
			return fmt.Sprintf("The reply ran out of its %d tokens inside a tool call; %s. Allow more tokens.",
				e.limitTokens, what)
		}
		return "The model ended its reply inside a tool call; " + what + ". Ask again."
	}
	onlyThought := e.thought && !e.answered
	switch {
	case onlyThought && e.reason == serve.FinishLength:
		return fmt.Sprintf("The reply ran out of its %d tokens while still thinking, so there is no answer. Allow "+
			"more tokens, "+
			"or turn thinking off with %s.", e.limitTokens, e.thinkingOff)
	case onlyThought && e.reason == serve.FinishStop:
		return fmt.Sprintf("The model ended its reply while still thinking, so there is no answer. Ask again, "+
			"or turn thinking off with %s.", e.thinkingOff)
	case e.reason == serve.FinishLength && e.windowed:
		return fmt.Sprintf("The reply ended after %d tokens because prompt and reply filled the window.", e.limitTokens)
	}
	return ""
}
