package web

import (
	"encoding/json"
	"net/http"
)

// Lines writes documents, one a line.
type Lines struct {
	encoder *json.Encoder
	control *http.ResponseController
}

// OpenLines sends the head.
func OpenLines(w http.ResponseWriter) *Lines {
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &Lines{encoder, http.NewResponseController(w)}
}

// Send writes one document and flushes it.
func (l *Lines) Send(document any) error {
	if err := l.encoder.Encode(document); err != nil {
		return err
	}
	return l.control.Flush()
}
