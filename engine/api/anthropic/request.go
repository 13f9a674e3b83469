package anthropic

import (
	"math"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// readMessages takes the body of /v1/messages.
func (w *Wire) readMessages(o *web.Object) (q *turn.Request, stream bool, failure *turn.Error) {
	if q, failure = w.readPrompt(o); failure != nil {
		return nil, false, failure
	}
	q.Sampling, q.TopLogprobs, q.Seed = w.turns.Defaults(), -1, turn.NewSeed()
	if v, given := o.Number("temperature"); given {
		q.Sampling.Temperature = v
	}
	if v, given := o.Number("top_p"); given {
		q.Sampling.TopP = v
	}
	if v, given := o.Integer("top_k", 0, math.MaxInt32); given {
		q.Sampling.TopK = int(v)
	}
	n, given := o.Integer("max_tokens", 1, math.MaxInt32)
	if !given {
		o.Fail("max_tokens", "is required: the most tokens of the reply")
	}
	q.MaxTokens = int(n)
	q.Stop = o.Stops("stop_sequences")
	stream, _ = o.Boolean("stream")
	o.Ignore("metadata", "inference_geo")
	o.Only("service_tier", "there is one tier here", `"auto"`, `"standard_only"`)
	if o.Err() == nil {
		if err := q.Sampling.Check(w.turns.VocabTokens()); err != nil {
			o.Keep(turn.AsError(err))
		}
	}
	return q, stream, o.Done()
}

// readCount takes the body of /v1/messages/count_tokens.
func (w *Wire) readCount(o *web.Object) (*turn.Request, *turn.Error) {
	q, failure := w.readPrompt(o)
	if failure != nil {
		return nil, failure
	}
	return q, o.Done()
}

// readPrompt takes the members that make the prompt.
func (w *Wire) readPrompt(o *web.Object) (*turn.Request, *turn.Error) {
	q := &turn.Request{Param: "messages", ThinkingOff: `thinking {"type": "disabled"}`}
	if err := web.WrongModel(o, w.turns); err != nil {
		return nil, err
	}
	q.Conversation.Messages = append(readSystem(o), readConversation(o)...)
	readTools(o, q)
	w.readThinking(o, q)
	w.readOutput(o, q)
	readContextEdits(o)
	o.Ignore("cache_control")
	if n := len(q.Conversation.Messages); n > 0 {
		q.Continue = q.Conversation.Messages[n-1].Role == "assistant"
	}
	return q, o.Err()
}

// readThinking takes thinking. Clients of this wire get none unless they ask for it.
func (w *Wire) readThinking(o *web.Object, q *turn.Request) {
	wanted := false
	if t := o.Sub("thinking"); t != nil {
		switch kind, _ := t.Text("type"); kind {
		case "enabled", "adaptive":
			wanted = true
		case "disabled":
		default:
			t.Fail("type", "is %.40q; allowed: enabled, adaptive, disabled", kind)
		}
		t.Integer("budget_tokens", 0, math.MaxInt32)
		t.Ignore("display") // thinking is always sent: the client must have it to send it back
		o.Keep(t.Done())
	}
	w.turns.SetThinking(q, wanted)
}

// readOutput takes output_config and output_format.
func (w *Wire) readOutput(o *web.Object, q *turn.Request) {
	readFormat(o, q, "output_format")
	c := o.Sub("output_config")
	if c == nil {
		return
	}
	readFormat(c, q, "format")
	switch effort, given := c.Text("effort"); effort {
	case "low", "medium", "high", "xhigh", "max":
		if w.turns.TemplateUses("reasoning_effort") {
			q.Conversation.ReasoningEffort = effort
		}
	default:
		if given {
			c.Fail("effort", "is %.40q; allowed: low, medium, high, xhigh, max", effort)
		}
	}
	o.Keep(c.Done())
}

func readFormat(o *web.Object, q *turn.Request, name string) {
	f := o.Sub(name)
	if f == nil {
		return
	}
	f.Only("type", "is no format that this wire has", `"json_schema"`)
	if q.Format = (&turn.Format{Param: o.At(name), Schema: f.Raw("schema")}); q.Format.Schema == nil {
		f.Fail("schema", "is needed")
	}
	o.Keep(f.Done())
}

// readContextEdits takes context_management: an edit would change the conversation, but for the one that keeps all.
func readContextEdits(o *web.Object) {
	c := o.Sub("context_management")
	if c == nil {
		return
	}
	edits, _ := c.Array("edits")
	for i, raw := range edits {
		edit, err := web.ReadObject(web.Element(c.At("edits"), i), raw)
		if err != nil {
			c.Keep(err)
			break
		}
		edit.Only("type", "this server edits no conversation; leave it out", `"clear_thinking_20251015"`)
		edit.Only("keep", "this server edits no conversation; which thinking is kept is the template's decision",
			`"all"`)
		c.Keep(edit.Done())
	}
	o.Keep(c.Done())
}
