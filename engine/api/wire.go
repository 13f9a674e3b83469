package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"slipway/engine/serve"
)

// stream writes server-sent events.
type stream struct {
	w http.ResponseWriter
}

// openStream sends the head.
func openStream(w http.ResponseWriter) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &stream{w}
}

// send writes one event and pushes it out.
func (s *stream) send(value any) error {
	body, err := marshal(value)
	if err != nil {
		return err
	}
	return s.raw(body)
}

func (s *stream) raw(body []byte) error {
	if _, err := s.w.Write(append(append([]byte("data: "), body...), "\n\n"...)); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// comment keeps a stream alive that has nothing to say.
func (s *stream) comment() error {
	if _, err := s.w.Write([]byte(":\n\n")); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// done ends a stream that is whole; one that failed ends without it.
func (s *stream) done() error { return s.raw([]byte("[DONE]")) }

// marshal is json.Marshal that leaves <, > and & as they are: code in replies stays readable in a terminal.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// plain is a reply sent in one piece, with white space in front while it is awaited.
type plain struct {
	rec *record
}

func (p *plain) idle() error {
	if p.rec.status == 0 {
		p.rec.Header().Set("Content-Type", "application/json")
		p.rec.Header().Set("X-Content-Type-Options", "nosniff")
	}
	if _, err := p.rec.Write([]byte(" ")); err != nil {
		return err
	}
	return http.NewResponseController(p.rec).Flush()
}

// finish sends the reply, or the error as status or body.
func (p *plain) finish(value any, failure *Error) *Error {
	if failure != nil && p.rec.status == 0 {
		return failure
	}
	if failure != nil {
		value = failure
	}
	body, err := marshal(value)
	if err != nil {
		return asError(err)
	}
	if p.rec.status == 0 {
		p.rec.Header().Set("Content-Type", "application/json")
		p.rec.Header().Set("X-Content-Type-Options", "nosniff")
	}
	p.rec.Write(append(body, '\n'))
	return failure
}

// statusClientClosed is the number that web servers write down for a request whose client went away. Nobody reads it but a
// client that closed only its sending side.
const statusClientClosed = 499

// failureOf is the error of a reply that did not end well; nil where it did. A cancelled reply is never whole: net/http
// ends a request's context also when the client closes its sending side alone, and such a client still reads.
func failureOf(end *serve.End) *Error {
	switch end.Reason {
	case serve.FinishError:
		return asError(end.Err)
	case serve.FinishCancelled:
		if errors.Is(end.Err, serve.ErrCancelled) {
			return &Error{Status: statusClientClosed, Message: "the reply was cancelled before it was whole, by whoever runs this server; ask again",
				Type: "invalid_request_error", Code: "cancelled"}
		}
		return &Error{Status: statusClientClosed, Message: "the reply was cancelled before it was whole, because the client closed the connection or its sending side; keep both open until the reply has ended",
			Type: "invalid_request_error", Code: "cancelled"}
	}
	return nil
}
