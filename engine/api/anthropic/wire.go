package anthropic

import (
	"net/http"
	"strings"
	"time"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// Wire is Anthropic's messages.
type Wire struct {
	turns     *turn.Service
	bodies    *web.Bodies
	keepAlive time.Duration // silence after which a waiting client is sent something
}

// New makes the wire over turns.
func New(turns *turn.Service, bodies *web.Bodies, keepAlive time.Duration) *Wire {
	return &Wire{turns, bodies, keepAlive}
}

// version is the header by which requests of this wire's clients are told from OpenAI's.
const version = "Anthropic-Version"

// Routes implements [web.Wire].
func (w *Wire) Routes() []web.Route {
	return []web.Route{
		{Method: http.MethodPost, Path: "/v1/messages", Handle: w.messages},
		{Method: http.MethodPost, Path: "/v1/messages/count_tokens", Handle: w.count},
		{Method: http.MethodGet, Path: "/v1/models", Header: version, Handle: w.models},
		{Method: http.MethodGet, Path: "/v1/models/", Header: version, Handle: w.model},
	}
}

// Spoken implements [web.Wire].
func (w *Wire) Spoken() string { return "Anthropic at /v1/messages" }

// messages answers POST /v1/messages.
func (w *Wire) messages(rec *web.Record, r *http.Request) *turn.Error {
	o, release, failure := w.bodies.Read(rec, r)
	defer release()
	if failure != nil {
		return failure
	}
	q, stream, failure := w.readMessages(o)
	if failure != nil {
		return failure
	}
	o = nil // release gives its memory back
	reply, failure := w.turns.Start(r.Context(), rec.ID, q, release)
	if failure != nil {
		return failure
	}
	if stream {
		return w.stream(rec, reply)
	}
	return w.plain(rec, reply)
}

// count answers POST /v1/messages/count_tokens.
func (w *Wire) count(rec *web.Record, r *http.Request) *turn.Error {
	o, release, failure := w.bodies.Read(rec, r)
	defer release()
	if failure != nil {
		return failure
	}
	q, failure := w.readCount(o)
	if failure != nil {
		return failure
	}
	ids, failure := w.turns.Tokens(q)
	if failure != nil {
		return failure
	}
	web.SendJSON(rec, http.StatusOK, map[string]int{"input_tokens": len(ids)})
	return nil
}

type modelEntry struct {
	Type           string `json:"type"`
	ID             string `json:"id"`
	DisplayName    string `json:"display_name"`
	CreatedAt      string `json:"created_at"` // when the server started: weights have no date
	MaxInputTokens int    `json:"max_input_tokens"`
	MaxTokens      int    `json:"max_tokens"` // of a reply
}

func (w *Wire) entry() modelEntry {
	m, window := w.turns.Model(), w.turns.WindowTokens()
	return modelEntry{"model", m.ID, m.ID, m.Started.UTC().Format(time.RFC3339), window, window}
}

func (w *Wire) models(rec *web.Record, _ *http.Request) *turn.Error {
	e := w.entry()
	web.SendJSON(rec, http.StatusOK, map[string]any{"data": []modelEntry{e}, "has_more": false, "first_id": e.ID,
		"last_id": e.ID})
	return nil
}

func (w *Wire) model(rec *web.Record, r *http.Request) *turn.Error {
	if failure := w.turns.WrongModel(strings.TrimPrefix(r.URL.Path, "/v1/models/")); failure != nil {
		return failure
	}
	web.SendJSON(rec, http.StatusOK, w.entry())
	return nil
}
