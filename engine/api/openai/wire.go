package openai

import (
	"net/http"
	"time"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// Wire is OpenAI's chat and text completions, its responses and its model list.
type Wire struct {
	turns     *turn.Service
	bodies    *web.Bodies
	keepAlive time.Duration // silence after which a waiting client is sent something
	kept      kept
}

// New makes the wire over turns.
func New(turns *turn.Service, bodies *web.Bodies, keepAlive time.Duration) *Wire {
	return &Wire{turns: turns, bodies: bodies, keepAlive: keepAlive}
}

// Routes implements [web.Wire].
func (w *Wire) Routes() []web.Route {
	return []web.Route{
		{Method: http.MethodPost, Path: "/v1/chat/completions", Handle: w.chat},
		{Method: http.MethodPost, Path: "/v1/completions", Handle: w.completions},
		{Method: http.MethodPost, Path: "/v1/responses", Handle: w.responses},
		{Method: http.MethodGet, Path: responsePath + web.PathID, Handle: w.keptResponse},
		{Method: http.MethodDelete, Path: responsePath + web.PathID, Handle: w.removeResponse},
		{Method: http.MethodPost, Path: "/tokenize", Handle: w.tokenize},
		{Method: http.MethodGet, Path: "/v1/models", Handle: w.models},
		{Method: http.MethodGet, Path: "/v1/models/", Handle: w.model},
	}
}

// Spoken implements [web.Wire].
func (w *Wire) Spoken() string {
	return "OpenAI at /v1/chat/completions, /v1/responses, /v1/completions and /v1/models"
}

// head is what every chunk and every complete reply begins with.
type head struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	Model       string `json:"model"`
	Fingerprint string `json:"system_fingerprint"`
}

func (w *Wire) head(prefix, object string) head {
	return head{turn.NewID(prefix), object, w.turns.Now().Unix(), w.turns.Model().ID, w.turns.Fingerprint()}
}

// finishReasons are OpenAI's words.
var finishReasons = map[turn.Finish]string{
	turn.FinishStop: "stop", turn.FinishLength: "length", turn.FinishCalls: "tool_calls",
}
