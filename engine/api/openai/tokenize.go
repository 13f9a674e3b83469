package openai

import (
	"net/http"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// tokenize answers POST /tokenize: the ids of a text (prompt, or content) or of a chat's prompt (the members of a
// chat).
func (w *Wire) tokenize(rec *web.Record, r *http.Request) *turn.Error {
	o, release, failure := w.bodies.Read(rec, r)
	defer release()
	if failure != nil {
		return failure
	}
	q, failure := w.readTokenize(o)
	if failure != nil {
		return failure
	}
	ids, failure := w.turns.Tokens(q)
	if failure != nil {
		return failure
	}
	web.SendJSON(rec, http.StatusOK, map[string]any{"tokens": ids, "count": len(ids),
		"max_model_len": w.turns.WindowTokens()})
	return nil
}

func (w *Wire) readTokenize(o *web.Object) (*turn.Request, *turn.Error) {
	// Special tokens are recognised in a text, and none is added; a chat's are its template's.
	o.Ignore("add_special_tokens", "add_special", "parse_special")
	if o.Has("messages") {
		q, _, failure := w.readChat(o)
		return q, failure
	}
	if name, given := o.Text("model"); given {
		o.Keep(w.turns.WrongModel(name))
	}
	raw := &turn.RawPrompt{Param: "prompt"}
	given := false
	if raw.Text, given = o.Text("prompt"); !given {
		raw.Param = "content"
		if raw.Text, given = o.Text("content"); !given {
			o.Fail("prompt", "is required: a text; or send messages")
		}
	}
	return &turn.Request{Raw: raw}, o.Done()
}
