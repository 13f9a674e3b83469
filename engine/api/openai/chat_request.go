package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// efforts are the values of reasoning_effort that OpenAI has; the template judges further.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

// thinkingOff is how clients turn thinking off here.
const thinkingOff = `chat_template_kwargs {"enable_thinking": false}`

func (w *Wire) readChat(o *web.Object) (*turn.Request, streaming, *turn.Error) {
	q := &turn.Request{ThinkingOff: thinkingOff}
	if err := w.wrongModel(o); err != nil {
		return nil, streaming{}, err
	}
	how := w.readGeneration(o, q)
	q.Conversation.Messages = readMessages(o)
	var parallel bool
	q.Tools, q.Choice, parallel = readTools(o)
	q.OneCall = !parallel
	effort, given := o.Text("reasoning_effort")
	if given && !slices.Contains(efforts, effort) {
		o.Fail("reasoning_effort", "is %.40q; allowed: %s", effort, strings.Join(efforts, ", "))
	}
	q.Conversation.ReasoningEffort = effort
	q.Conversation.Kwargs = w.readKwargs(o)
	readChatLogprobs(o, q)
	o.Only("response_format", "structured output is not supported yet", `{"type":"text"}`)
	o.Only("modalities", "this server answers with text", `["text"]`)
	o.Only("verbosity", "the model has no such setting", `"medium"`)
	return q, how, o.Done()
}

// readKwargs takes the template's variables. One that the template does not use would be ignored in silence, but
// for enable_thinking, which clients send whatever the model. The template judges the values of all but that one,
// whose type it would not check.
func (w *Wire) readKwargs(o *web.Object) json.RawMessage {
	raw := o.Take("chat_template_kwargs")
	if raw == nil {
		return nil
	}
	sub, err := web.ReadObject("chat_template_kwargs", raw)
	if err != nil {
		o.Keep(err)
		return nil
	}
	sub.Boolean("enable_thinking")
	for _, name := range sub.Names() {
		if name != "enable_thinking" && !w.turns.TemplateUses(name) {
			sub.Fail(name, "is no variable of this model's chat template, so it would change nothing")
		}
	}
	o.Keep(sub.Err())
	return raw
}

// readChatLogprobs takes logprobs (a boolean) and top_logprobs.
func readChatLogprobs(o *web.Object, q *turn.Request) {
	wanted, _ := o.Boolean("logprobs")
	n, given := o.Integer("top_logprobs", 0, 20)
	switch {
	case wanted:
		q.TopLogprobs = int(n)
	case given:
		o.Fail("top_logprobs", "needs logprobs true")
	}
}
