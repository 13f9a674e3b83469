package anthropic

import (
	"errors"
	"fmt"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/serve"
)

// errorDocument is Anthropic's form of an error, as a body and as the event of a stream.
type errorDocument struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// statusOverloaded is Anthropic's for a server that cannot take the request now.
const statusOverloaded = 529

// Error implements [web.Wire].
func (w *Wire) Error(e *turn.Error) (status int, document any) {
	status = web.StatusOf(e.Kind)
	if e.Kind == turn.Unavailable {
		status = statusOverloaded
	}
	return status, documentOf(e)
}

func documentOf(e *turn.Error) (d errorDocument) {
	d.Type, d.Error.Type, d.Error.Message = "error", typeOf(e.Kind), e.Sentence
	var long *serve.PromptTooLongError
	if errors.As(e, &long) { // the sentence by which clients know that they must shorten the conversation
		d.Error.Message = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", long.PromptTokens,
			long.WindowTokens)
	}
	return d
}

// typeOf is Anthropic's class of an error.
func typeOf(kind turn.Kind) string {
	switch kind {
	case turn.Unauthorized:
		return "authentication_error"
	case turn.Forbidden:
		return "permission_error"
	case turn.NotFound:
		return "not_found_error"
	case turn.TooLarge:
		return "request_too_large"
	case turn.QueueFull:
		return "rate_limit_error"
	case turn.Unavailable:
		return "overloaded_error"
	case turn.Internal, turn.Unsupported, turn.Cancelled:
		return "api_error"
	}
	return "invalid_request_error"
}
