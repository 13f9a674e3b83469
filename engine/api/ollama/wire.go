package ollama

import (
	"net/http"
	"strings"
	"time"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// Wire is Ollama's chat, as far as clients need it.
type Wire struct {
	turns     *turn.Service
	bodies    *web.Bodies
	keepAlive time.Duration // silence after which a waiting client is sent something
}

// New makes the wire over turns.
func New(turns *turn.Service, bodies *web.Bodies, keepAlive time.Duration) *Wire {
	return &Wire{turns, bodies, keepAlive}
}

// Routes implements [web.Wire].
func (w *Wire) Routes() []web.Route {
	return []web.Route{
		{Method: http.MethodGet, Path: "/api/version", Handle: w.version},
		{Method: http.MethodGet, Path: "/api/tags", Handle: w.tags},
		{Method: http.MethodPost, Path: "/api/show", Handle: w.show},
		{Method: http.MethodPost, Path: "/api/chat", Handle: w.chat},
	}
}

// Spoken implements [web.Wire].
func (w *Wire) Spoken() string { return "Ollama at /api/chat and /api/tags" }

// Error implements [web.Wire].
func (w *Wire) Error(e *turn.Error) (status int, document any) {
	return web.StatusOf(e.Kind), errorDocument{e.Sentence}
}

type errorDocument struct {
	Error string `json:"error"`
}

// spokenVersion is the version of Ollama whose chat this is: clients ask for a least one.
const spokenVersion = "0.12.6"

func (w *Wire) version(rec *web.Record, _ *http.Request) *turn.Error {
	web.SendJSON(rec, http.StatusOK, map[string]string{"version": spokenVersion, "server": "slipway"})
	return nil
}

type details struct {
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

func (w *Wire) details() details {
	family := w.turns.Family()
	return details{Format: "safetensors", Family: family, Families: []string{family}}
}

func (w *Wire) tags(rec *web.Record, _ *http.Request) *turn.Error {
	m := w.turns.Model()
	web.SendJSON(rec, http.StatusOK, map[string]any{"models": []any{map[string]any{
		"name": m.ID, "model": m.ID, "modified_at": m.Started.UTC(), "size": 0, "digest": m.Revision,
		"details": w.details(),
	}}})
	return nil
}

// show answers POST /api/show.
func (w *Wire) show(rec *web.Record, r *http.Request) *turn.Error {
	o, release, failure := w.bodies.Read(rec, r)
	defer release()
	if failure != nil {
		return failure
	}
	o.Ignore("verbose", "system", "template", "options")
	if older, given := o.Text("name"); given && !o.Has("model") {
		failure = w.wrongModel("name", older)
	} else {
		failure = w.readModel(o)
	}
	if failure == nil {
		failure = o.Done()
	}
	if failure != nil {
		return failure
	}
	m, family := w.turns.Model(), w.turns.Family()
	can := []string{"completion"}
	if w.turns.TemplateUses("tools") {
		can = append(can, "tools")
	}
	if w.turns.TemplateUses("enable_thinking") {
		can = append(can, "thinking")
	}
	web.SendJSON(rec, http.StatusOK, map[string]any{
		"modelfile": "", "parameters": "", "template": "", "license": "", "details": w.details(), "capabilities": can,
		"modified_at": m.Started.UTC(),
		"model_info": map[string]any{"general.architecture": family,
			family + ".context_length": w.turns.WindowTokens()},
	})
	return nil
}

// readModel takes the member model.
func (w *Wire) readModel(o *web.Object) *turn.Error {
	name, given := o.Text("model")
	if o.Err() != nil {
		return o.Err()
	}
	if !given {
		return turn.Invalid("model", "is required; this server has %q", w.turns.Model().ID)
	}
	return w.wrongModel("model", name)
}

// wrongModel refuses every model but the one that is served, which may have a tag that says nothing.
func (w *Wire) wrongModel(param, name string) *turn.Error {
	err := w.turns.WrongModel(name)
	if plain, tagged := strings.CutSuffix(name, ":latest"); err != nil && tagged && w.turns.WrongModel(plain) == nil {
		return nil
	}
	if err != nil {
		err.Param = param
	}
	return err
}

// chat answers POST /api/chat.
func (w *Wire) chat(rec *web.Record, r *http.Request) *turn.Error {
	o, release, failure := w.bodies.Read(rec, r)
	defer release()
	if failure != nil {
		return failure
	}
	q, stream, failure := w.readChat(o)
	if failure != nil {
		return failure
	}
	o = nil // release gives its memory back
	if len(q.Conversation.Messages) == 0 {
		loaded := w.piece(message{Role: "assistant"})
		loaded.Done, loaded.Reason = true, "load"
		web.SendJSON(rec, http.StatusOK, loaded)
		return nil
	}
	reply, failure := w.turns.Start(r.Context(), rec.ID, q, release)
	if failure != nil {
		return failure
	}
	if stream {
		return w.stream(rec, reply)
	}
	return w.plain(rec, reply)
}
