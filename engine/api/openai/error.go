package openai

import (
	"slipway/engine/api/turn"
	"slipway/engine/api/web"
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
	d.Error.Code, d.Error.Message, d.Error.Param, d.Error.Type = orNull(e.Code), e.Sentence, orNull(e.Param),
		typeOf(e.Kind)
	return d
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
