package turn

import (
	"errors"
	"fmt"
	"time"

	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// Kind is the class of a refusal or a failure. Every wire has a status and a word of its own for each.
type Kind int

const (
	Internal       Kind = iota // the server failed
	InvalidRequest             // the request asks for what cannot be done
	Unauthorized               // the key is missing or wrong
	Forbidden                  // the caller may not ask at all
	NotFound                   // a path, a model or a request that does not exist
	WrongMethod                // of HTTP
	Conflict                   // not now: something else is running
	TooLarge                   // the body
	WrongMedia                 // the body's type or encoding
	Cancelled                  // before the reply was complete
	QueueFull                  // retry later
	Unsupported                // this server cannot do it
	Unavailable                // loading, stopping or short of memory: retry later
)

// Error is why a request was refused or failed.
type Error struct {
	Kind       Kind
	Code       string        // for programs and counters: "invalid_value", "queue_full"
	Param      string        // path of the parameter that is meant, as the client wrote it; empty for none
	Sentence   string        // for people; it names the parameter
	RetryAfter time.Duration // 0: no advice
	Err        error         // the cause, where it is one of the layers below
}

func (e *Error) Error() string { return e.Sentence }
func (e *Error) Unwrap() error { return e.Err }

// Invalid refuses one parameter; param is empty where the whole request is meant.
func Invalid(param, format string, args ...any) *Error {
	sentence := fmt.Sprintf(format, args...)
	if param != "" {
		sentence = param + ": " + sentence
	}
	return &Error{Kind: InvalidRequest, Code: "invalid_value", Param: param, Sentence: sentence}
}

// AsError classifies any error of the layers below. Errors that are the server's own are named, not described.
func AsError(err error) *Error {
	var (
		own          *Error
		full         *serve.QueueFullError
		tooLong      *serve.PromptTooLongError
		memory       *serve.MemoryError
		field        *sample.FieldError
		template     *text.TemplateError
		conversation *text.ConversationError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &full):
		return &Error{Kind: QueueFull, Code: "queue_full", Sentence: full.Error(), RetryAfter: full.RetryAfter,
			Err: err}
	case errors.As(err, &tooLong):
		return &Error{Kind: InvalidRequest, Code: "context_length_exceeded", Err: err,
			Sentence: tooLong.Error() + ". Shorten the prompt or start the server with a larger window."}
	case errors.As(err, &memory):
		return &Error{Kind: Unavailable, Code: "memory_short", Sentence: memory.Error(), RetryAfter: memory.RetryAfter,
			Err: err}
	case errors.Is(err, serve.ErrEmptyPrompt):
		return Invalid("", "%v", err)
	case errors.As(err, &field):
		e := Invalid(field.Field, "%s", field.Problem)
		e.Sentence = field.Error()
		return e
	case errors.As(err, &conversation):
		return Invalid(conversation.Field, "%s", conversation.Problem)
	case errors.As(err, &template):
		return &Error{Kind: Internal, Code: "template_failed", Sentence: template.Error(), Err: err}
	case errors.Is(err, serve.ErrDraining), errors.Is(err, serve.ErrStopped):
		return &Error{Kind: Unavailable, Code: "stopping", Sentence: err.Error(), RetryAfter: 5 * time.Second, Err: err}
	}
	return &Error{Kind: Internal, Code: "internal_error", Err: err,
		Sentence: "the server failed on this request; its log says more"}
}

// failureOf is the error of a reply that did not end well; nil where it did. A cancelled reply is never complete:
// net/http ends a request's context also when the client closes its sending side alone, and such a client still
// reads.
func failureOf(end *serve.End) *Error {
	switch end.Reason {
	case serve.FinishError:
		return AsError(end.Err)
	case serve.FinishCancelled:
		e := &Error{Kind: Cancelled, Code: "cancelled", Err: end.Err}
		e.Sentence = "the reply was cancelled before it was complete, because the client closed the connection " +
			"or its sending side; keep both open until the reply has ended"
		if errors.Is(end.Err, serve.ErrCancelled) {
			e.Sentence = "the reply was cancelled on the server before it was complete; ask again"
		}
		return e
	}
	return nil
}
