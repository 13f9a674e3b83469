package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// defaultTextTokens is OpenAI's default for /v1/completions.
const defaultTextTokens = 16

// completions answers POST /v1/completions. The prompt is taken raw: added tokens are recognised, nothing is added.
func (w *Wire) completions(rec *web.Record, r *http.Request) *turn.Error {
	return w.generate(rec, r, form{w.readText, w.streamText, w.plainText})
}

func (w *Wire) readText(o *web.Object) (*turn.Request, streaming, *turn.Error) {
	q := &turn.Request{}
	if err := web.WrongModel(o, w.turns); err != nil {
		return nil, streaming{}, err
	}
	how := w.readGeneration(o, q)
	if q.MaxTokens == 0 && !how.unbounded {
		q.MaxTokens = defaultTextTokens
	}
	if n, given := o.Integer("logprobs", 0, 5); given {
		q.TopLogprobs = int(n)
	}
	o.Only("echo", "the prompt is not sent back", "false")
	o.Only("suffix", "filling in the middle is not supported", `""`)
	if n, given := o.Integer("best_of", math.MinInt64, math.MaxInt64); given && n != 1 {
		o.Fail("best_of", "is %d; this server gives one reply a request (best_of 1)", n)
	}
	raw := o.Take("prompt")
	if err := o.Done(); err != nil {
		return nil, how, err
	}
	var err *turn.Error
	q.Raw, err = w.readPrompt("prompt", raw, true)
	return q, how, err
}

// readPrompt takes a string, an array of token ids, or an array that holds one of either.
func (w *Wire) readPrompt(path string, raw json.RawMessage, nested bool) (*turn.RawPrompt, *turn.Error) {
	switch {
	case raw == nil:
		return nil, turn.Invalid(path, "is required")
	case raw[0] == '"':
		var prompt string
		if json.Unmarshal(raw, &prompt) != nil {
			return nil, turn.Invalid(path, "is not a string")
		}
		return &turn.RawPrompt{Param: path, Text: prompt}, nil
	}
	if raw[0] != '[' {
		return nil, turn.Invalid(path, "must be a string or an array of token ids, not %s", web.KindOf(raw))
	}
	elements := web.ReadArray(raw)
	if nested && len(elements) > 0 && (elements[0][0] == '"' || elements[0][0] == '[') {
		if len(elements) > 1 {
			return nil, turn.Invalid(path, "holds %d prompts; this server takes one a request", len(elements))
		}
		return w.readPrompt(web.Element(path, 0), elements[0], false)
	}
	ids := make([]int32, 0, len(elements))
	for i, e := range elements {
		id, err := strconv.ParseInt(string(bytes.TrimSpace(e)), 10, 64)
		if err != nil {
			return nil, turn.Invalid(web.Element(path, i), "must be a token id, not %s", web.Shown(e))
		}
		if id < 0 || id >= int64(w.turns.VocabTokens()) {
			return nil, turn.Invalid(web.Element(path, i), "is %d; token ids are in [0, %d)", id, w.turns.VocabTokens())
		}
		ids = append(ids, int32(id))
	}
	return &turn.RawPrompt{Param: path, IDs: ids}, nil
}
