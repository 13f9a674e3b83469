package openai

import (
	"errors"
	"fmt"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/serve"
)

// errorDocument is OpenAI's form of an error.
type errorDocument struct {
	Error struct {
		Code    *string `json:"code"`
		Message string  `json:"message"`
		Param   *string `json:"param"`
		Type    string  `json:"type"`
	} `json:"error"`
}

// Error implements [web.Wire].
func (w *Wire) Error(e *turn.Error) (status int, document any) {
	return web.StatusOf(e.Kind), documentOf(e)
}

func documentOf(e *turn.Error) (d errorDocument) {
	d.Error.Code, d.Error.Message, d.Error.Param, d.Error.Type = orNull(e.Code), sentenceOf(e), orNull(e.Param),
		typeOf(e.Kind)
	return d
}

// overflow is the code of a prompt that does not fit.
const overflow = "context_length_exceeded"

// sentenceOf adds the words by which clients know that they must shorten the conversation.
func sentenceOf(e *turn.Error) string {
	var long *serve.PromptTooLongError
	if !errors.As(e, &long) {
		return e.Sentence
	}
	return fmt.Sprintf("This server's maximum context length is %d tokens: %s", long.WindowTokens, e.Sentence)
}

// typeOf is OpenAI's class of an error.
func typeOf(kind turn.Kind) string {
	switch kind {
	case turn.Internal, turn.Unsupported, turn.Unavailable:
		return "server_error"
	case turn.QueueFull:
		return "rate_limit_error"
	}
	return "invalid_request_error"
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
