package turn

import (
	"fmt"
	"strings"

	"slipway/engine/serve"
	"slipway/engine/text/family"
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
	StopText        string // of the request, that ended a conversation's reply; empty: none did
	// Approximations are what of the server's settings may have changed the answer; nil: nothing.
	Approximations []string

	reason      serve.FinishReason
	limitTokens int
	windowed    bool // prompt and reply filled the window
	calls       int
	verdict     family.Verdict // on what looked like a call
	thought     bool           // there was thinking
	answered    bool           // there was content or a call
	normalized  int            // places of the prompt that rules changed
	thinkingOff string
}

// Finish gives the reason of a complete reply.
func (e *End) Finish() Finish {
	switch {
	case e.reason == serve.FinishLength:
		return FinishLength
	case e.calls > 0:
		return FinishCalls
	}
	return FinishStop
}

// Notice says in sentences what the finish reason leaves open; empty where nothing needs saying.
func (e *End) Notice() string {
	notice := e.why()
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

func (e *End) why() string {
	switch {
	case e.verdict == family.CutCall && e.reason == serve.FinishLength:
		return fmt.Sprintf("The reply ran out of its %d tokens inside a tool call; it is left out. Allow more tokens.",
			e.limitTokens)
	case e.verdict == family.CutCall:
		return "The reply was cut inside a tool call; it is left out."
	case e.verdict == family.NoReading:
		return "The reply holds what looks like a tool call and is none of the given tools with its " +
			"parameters; it is " +
			"left as text, and must not be run. Ask again."
	case e.verdict == family.SeveralReadings:
		return "The reply holds what looks like a tool call and can be read in more than one way; it is " +
			"left as text, " +
			"and must not be run. Ask again."
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
