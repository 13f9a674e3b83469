package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/text"
)

// asked is a request for a response, with what its documents say of the request.
type asked struct {
	turn         *turn.Request
	stream       bool
	store        bool
	conversation []text.Message  // input behind what it goes on from, without instructions
	spaces       map[string]name // of functions in namespaces, by the name that the model knows
	echo         echo
}

// echo are members of a response that repeat its request.
type echo struct {
	Instructions    *string         `json:"instructions"`
	MaxOutputTokens *int64          `json:"max_output_tokens"`
	Metadata        json.RawMessage `json:"metadata"`
	Parallel        bool            `json:"parallel_tool_calls"`
	Previous        *string         `json:"previous_response_id"`
	Reasoning       json.RawMessage `json:"reasoning"`
	Store           bool            `json:"store"`
	Temperature     float64         `json:"temperature"`
	Text            json.RawMessage `json:"text"`
	ToolChoice      json.RawMessage `json:"tool_choice"`
	Tools           json.RawMessage `json:"tools"`
	TopP            float64         `json:"top_p"`
	Truncation      string          `json:"truncation"`
}

// repeated copies a member, so that it outlives the body; absent is what it counts as.
func repeated(o *web.Object, member, absent string) json.RawMessage {
	if !o.Has(member) {
		return json.RawMessage(absent)
	}
	return bytes.Clone(o.Peek(member))
}

func (w *Wire) readResponse(o *web.Object) (*asked, *turn.Error) {
	q := &turn.Request{Param: "input", ThinkingOff: `reasoning {"effort": "none"}`}
	a := &asked{turn: q, spaces: map[string]name{}, echo: echo{
		Metadata: repeated(o, "metadata", "{}"), Reasoning: repeated(o, "reasoning", "{}"),
		Text: repeated(o, "text", `{"format":{"type":"text"}}`), ToolChoice: repeated(o, "tool_choice", `"auto"`),
		Tools: repeated(o, "tools", "[]"), Truncation: "disabled",
	}}
	if err := web.WrongModel(o, w.turns); err != nil {
		return nil, err
	}
	if previous, given := o.Text("previous_response_id"); given {
		before, err := w.kept.conversation(previous)
		if err != nil {
			return nil, err
		}
		a.echo.Previous, a.conversation = &previous, before
	}
	a.conversation = append(a.conversation, w.readInput(o)...)
	q.Conversation.Messages = slices.Clone(a.conversation)
	if instructions, given := o.Text("instructions"); given {
		a.echo.Instructions = &instructions
		q.Conversation.Messages = slices.Insert(q.Conversation.Messages, 0, text.Message{Role: "system",
			Content: instructions})
	}
	readResponseTools(o, a)
	w.readResponseSampling(o, a)
	if r := o.Sub("reasoning"); r != nil {
		if effort, given := r.Text("effort"); given {
			o.Keep(w.turns.SetEffort(q, r.At("effort"), effort))
		}
		r.Ignore("summary", "generate_summary") // thinking is sent as it is
		o.Keep(r.Done())
	}
	if t := o.Sub("text"); t != nil {
		readResponseFormat(t, q)
		t.Only("verbosity", "the model has no such setting", `"medium"`)
		o.Keep(t.Done())
	}
	store, given := o.Boolean("store")
	a.store = store || !given
	a.echo.Store = a.store
	readResponseRest(o)
	if n := len(q.Conversation.Messages); n > 0 {
		last := q.Conversation.Messages[n-1]
		q.Continue = last.Role == "assistant" && len(last.ToolCalls) == 0 && q.Choice.Calling != turn.CallRequired &&
			q.Choice.Calling != turn.CallNamed
	}
	return a, o.Done()
}

func (w *Wire) readResponseSampling(o *web.Object, a *asked) {
	q := a.turn
	q.Sampling, q.TopLogprobs, q.Seed = w.turns.Defaults(), -1, turn.NewSeed()
	for member, to := range map[string]*float64{"temperature": &q.Sampling.Temperature, "top_p": &q.Sampling.TopP,
		"presence_penalty": &q.Sampling.PresencePenalty, "frequency_penalty": &q.Sampling.FrequencyPenalty} {
		if v, given := o.Number(member); given {
			*to = v
		}
	}
	a.echo.Temperature, a.echo.TopP = q.Sampling.Temperature, q.Sampling.TopP
	if n, given := o.Integer("max_output_tokens", 1, math.MaxInt32); given {
		q.MaxTokens, a.echo.MaxOutputTokens = int(n), &n
	}
	a.stream, _ = o.Boolean("stream")
	if sub := o.Sub("stream_options"); sub != nil {
		sub.Ignore("include_obfuscation")
		o.Keep(sub.Done())
	}
	if o.Err() == nil {
		if err := q.Sampling.Check(w.turns.VocabTokens()); err != nil {
			o.Keep(turn.AsError(err))
		}
	}
}

func readResponseFormat(o *web.Object, q *turn.Request) {
	f := o.Sub("format")
	if f == nil {
		return
	}
	switch kind, _ := f.Text("type"); kind {
	case "text":
	case "json_object":
		q.Format = &turn.Format{Param: f.At("type")}
	case "json_schema":
		f.Ignore("name", "description", "strict")
		if q.Format = (&turn.Format{Param: f.At("schema"), Schema: f.Raw("schema")}); q.Format.Schema == nil {
			f.Fail("schema", "is needed")
		}
	default:
		f.Fail("type", "is %.40q; allowed: text, json_object, json_schema", kind)
	}
	o.Keep(f.Done())
}

// readResponseRest takes what changes nothing, and refuses what would.
func readResponseRest(o *web.Object) {
	include, _ := o.Array("include")
	for i, raw := range include {
		if string(raw) == `"message.output_text.logprobs"` {
			o.Keep(turn.Invalid(web.Element("include", i), "this wire reports no log probabilities"))
		}
	}
	o.Only("top_logprobs", "this wire reports no log probabilities", "0")
	o.Only("background", "a response is sent as it is made", "false")
	o.Only("truncation", "nothing is left out of a conversation", `"disabled"`)
	o.Only("service_tier", "there is one tier here", `"auto"`, `"default"`)
	o.Ignore("metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "max_tool_calls",
		"client_metadata")
}
