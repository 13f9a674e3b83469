package api

import (
	"fmt"
	"net/http"
	"strings"
)

// modelEntry is OpenAI's model object with two members of our own.
type modelEntry struct {
	ID            string `json:"id"`
	Object        string `json:"object"`
	Created       int64  `json:"created"` // when the server started: the weights tell no date
	OwnedBy       string `json:"owned_by"`
	ContextWindow int    `json:"context_window"` // tokens of prompt and reply together
	Revision      string `json:"revision,omitempty"`
}

func (s *Server) entry() modelEntry {
	return modelEntry{s.opt.ModelID, "model", s.opt.Started.Unix(), "slipway", s.opt.Engine.WindowTokens(), s.opt.Revision}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	sendJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []modelEntry{s.entry()}})
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	if name := strings.TrimPrefix(r.URL.Path, "/v1/models/"); name != s.opt.ModelID {
		w.(*record).refuse(&Error{Status: http.StatusNotFound, Message: fmt.Sprintf("the model %.100q is not here; this server has: %s", name, s.opt.ModelID),
			Type: "invalid_request_error", Param: "model", Code: "model_not_found"})
		return
	}
	sendJSON(w, http.StatusOK, s.entry())
}
