package openai

import (
	"net/http"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// modelEntry is OpenAI's model object with two members of our own.
type modelEntry struct {
	ID            string `json:"id"`
	Object        string `json:"object"`
	Created       int64  `json:"created"` // when the server started: weights have no date
	OwnedBy       string `json:"owned_by"`
	ContextWindow int    `json:"context_window"` // tokens of prompt and reply together
	Revision      string `json:"revision,omitempty"`
}

func (w *Wire) entry() modelEntry {
	m := w.turns.Model()
	return modelEntry{m.ID, "model", m.Started.Unix(), "slipway", w.turns.WindowTokens(), m.Revision}
}

func (w *Wire) models(rec *web.Record, _ *http.Request) *turn.Error {
	web.SendJSON(rec, http.StatusOK, map[string]any{"object": "list", "data": []modelEntry{w.entry()}})
	return nil
}

func (w *Wire) model(rec *web.Record, r *http.Request) *turn.Error {
	if failure := w.turns.WrongModel(strings.TrimPrefix(r.URL.Path, "/v1/models/")); failure != nil {
		return failure
	}
	web.SendJSON(rec, http.StatusOK, w.entry())
	return nil
}
