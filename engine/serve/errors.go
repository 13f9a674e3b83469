package serve

import (
	"errors"
	"fmt"
	"time"
)

// ErrDraining says that the engine takes no new request because it is shutting down.
var ErrDraining = errors.New("the server is stopping and takes no new request")

// ErrStopped is the cause of a reply that ended because the engine stopped.
var ErrStopped = errors.New("the server stopped before the reply was complete")

// ErrEmptyPrompt says that a prompt has no token.
var ErrEmptyPrompt = errors.New("the prompt has no token")

// QueueFullError says that the queue is full.
type QueueFullError struct {
	Waiting    int
	RetryAfter time.Duration // whole seconds, at least 1; estimated from recent requests
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("%d requests are waiting already, which is the bound; try again in about %.0f s", e.Waiting,
		e.RetryAfter.Seconds())
}

// PromptTooLongError says that the prompt leaves no room for a reply.
type PromptTooLongError struct {
	PromptTokens int
	AtLeast      bool // PromptTokens is a lower bound: counting stopped when the prompt was far too long
	WindowTokens int
}

func (e *PromptTooLongError) Error() string {
	count := fmt.Sprint(e.PromptTokens)
	if e.AtLeast {
		count = "at least " + count
	}
	return fmt.Sprintf("the prompt has %s tokens; the window holds %d, of which at least one is the reply's", count,
		e.WindowTokens)
}

// PanicError is a panic of our own code while it worked for a request.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("a bug in the server: %v", e.Value) }
