package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// Error is a refusal in OpenAI's shape.
type Error struct {
	Status     int           // HTTP status
	Message    string        // a sentence for people
	Type       string        // OpenAI's class
	Param      string        // path of the member that is meant; empty for none
	Code       string        // for programs; empty for none
	RetryAfter time.Duration // header Retry-After; 0 for none
	Allow      string        // header Allow; empty for none
}

func (e *Error) Error() string { return e.Message }

// MarshalJSON gives {"error":{"message","type","param","code"}}, the last two null where empty.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"error": map[string]any{
		"message": e.Message, "type": e.Type, "param": orNull(e.Param), "code": orNull(e.Code),
	}})
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// invalid is a 400 about one member of the body; param may be empty when the whole body is meant.
func invalid(param, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	if param != "" {
		message = param + ": " + message
	}
	return &Error{Status: http.StatusBadRequest, Message: message, Type: "invalid_request_error", Param: param, Code: "invalid_value"}
}

// asError puts any error of the layers below into the wire shape. Errors that are the server's are named, not described.
func asError(err error) *Error {
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
		return &Error{Status: http.StatusTooManyRequests, Message: full.Error(), Type: "rate_limit_error", Code: "queue_full", RetryAfter: full.RetryAfter}
	case errors.As(err, &tooLong):
		return &Error{Status: http.StatusBadRequest, Message: tooLong.Error() + ". Shorten the prompt or start the server with a larger window.",
			Type: "invalid_request_error", Code: "context_length_exceeded"}
	case errors.As(err, &memory):
		return &Error{Status: http.StatusServiceUnavailable, Message: memory.Error(), Type: "server_error", Code: "memory_short", RetryAfter: memory.RetryAfter}
	case errors.Is(err, serve.ErrEmptyPrompt):
		return invalid("", "%v", err)
	case errors.As(err, &field):
		e := invalid(field.Field, "%s", field.Problem)
		e.Message = field.Error()
		return e
	case errors.As(err, &conversation):
		return invalid(conversation.Field, "%s", conversation.Problem)
	case errors.As(err, &template) && template.Raised:
		return invalid("messages", "%s", template.Error())
	case errors.As(err, &template):
		return &Error{Status: http.StatusInternalServerError, Message: template.Error(), Type: "server_error", Code: "template_failed"}
	case errors.Is(err, serve.ErrDraining), errors.Is(err, serve.ErrStopped):
		return &Error{Status: http.StatusServiceUnavailable, Message: err.Error(), Type: "server_error", Code: "stopping", RetryAfter: 5 * time.Second}
	}
	return &Error{Status: http.StatusInternalServerError, Message: "the server failed on this request; its log says more", Type: "server_error", Code: "internal_error"}
}

// write sends the refusal as the whole response.
func (e *Error) write(w http.ResponseWriter) {
	body, _ := json.Marshal(e)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
	}
	if e.Allow != "" {
		h.Set("Allow", e.Allow)
	}
	w.WriteHeader(e.Status)
	w.Write(append(body, '\n'))
}
