package web

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// Stream writes server-sent events.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer // of the event being written
	encoder *json.Encoder
}

// OpenStream sends the head.
func OpenStream(w http.ResponseWriter) *Stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &Stream{w: w, control: http.NewResponseController(w)}
	s.encoder = json.NewEncoder(&s.buffer)
	s.encoder.SetEscapeHTML(false)
	return s
}

// Send writes one event without a name and flushes it.
func (s *Stream) Send(document any) error { return s.Event("", document) }

// Event writes one event with a name. <, > and & stay as they are: code in replies stays readable in a terminal.
func (s *Stream) Event(name string, document any) error {
	s.buffer.Reset()
	if name != "" {
		s.buffer.WriteString("event: " + name + "\n")
	}
	s.buffer.WriteString("data: ")
	if err := s.encoder.Encode(document); err != nil { // with one line end
		return err
	}
	s.buffer.WriteByte('\n')
	return s.flush(s.buffer.Bytes())
}

// Comment keeps a stream alive that has nothing to say.
func (s *Stream) Comment() error { return s.flush([]byte(":\n\n")) }

// Raw writes one event whose data is not JSON.
func (s *Stream) Raw(data string) error { return s.flush([]byte("data: " + data + "\n\n")) }

func (s *Stream) flush(event []byte) error {
	if _, err := s.w.Write(event); err != nil {
		return err
	}
	return s.control.Flush()
}
