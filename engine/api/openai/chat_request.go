package openai

import (
	"encoding/json"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// thinkingOff is how clients turn thinking off here.
const thinkingOff = `chat_template_kwargs {"enable_thinking": false}`

func (w *Wire) readChat(o *web.Object) (*turn.Request, streaming, *turn.Error) {
	q := &turn.Request{Param: "messages", ThinkingOff: thinkingOff}
	if err := web.WrongModel(o, w.turns); err != nil {
		return nil, streaming{}, err
	}
	how := w.readGeneration(o, q)
	q.Conversation.Messages = readMessages(o)
	readTools(o, q)
	if effort, given := o.Text("reasoning_effort"); given {
		o.Keep(w.turns.SetEffort(q, "reasoning_effort", effort))
	}
	q.Conversation.Kwargs = w.readKwargs(o)
	readChatLogprobs(o, q)
	readFormat(o, q)
	o.Only("modalities", "this server answers with text", `["text"]`)
	o.Only("verbosity", "the model has no such setting", `"medium"`)
	w.readContinuation(o, q)
	return q, how, o.Done()
}

// readContinuation decides whether the last message, an assistant's, is continued. It is unless
// continue_final_message is false; prefix or partial of the message, and continue_final_message true, insist.
func (w *Wire) readContinuation(o *web.Object, q *turn.Request) {
	wanted, given := o.Boolean("continue_final_message")
	opens, opensGiven := o.Boolean("add_generation_prompt")
	if len(q.Conversation.Messages) == 0 {
		return // refused already
	}
	last := q.Conversation.Messages[len(q.Conversation.Messages)-1]
	insists := wanted || last.Partial
	possible := last.Role == "assistant" && len(last.ToolCalls) == 0
	q.Continue = insists || possible && !given
	switch {
	case insists && last.Role != "assistant":
		o.Fail("continue_final_message", "needs a last message of the assistant, not of role %s", last.Role)
	case insists && given && !wanted:
		o.Fail("continue_final_message", "is false, while the last message asks to be continued")
	case opensGiven && opens && wanted:
		o.Fail("add_generation_prompt", "cannot be true with continue_final_message true")
	case opensGiven && !opens && !q.Continue:
		o.Fail("add_generation_prompt", "cannot be false: the reply is a message of its own")
	}
}

// readFormat takes response_format.
func readFormat(o *web.Object, q *turn.Request) {
	f := o.Sub("response_format")
	if f == nil {
		return
	}
	switch kind, _ := f.Text("type"); kind {
	case "text":
	case "json_object":
		q.Format = &turn.Format{Param: "response_format"}
	case "json_schema":
		q.Format = &turn.Format{Param: "response_format"}
		if named := f.Sub("json_schema"); named != nil {
			named.Ignore("name", "description", "strict")
			if q.Format.Schema = named.Raw("schema"); q.Format.Schema == nil {
				named.Fail("schema", "is needed")
			}
			f.Keep(named.Done())
		} else {
			f.Fail("json_schema", "is needed")
		}
	default:
		f.Fail("type", "is %.40q; allowed: text, json_object, json_schema", kind)
	}
	o.Keep(f.Done())
}

// readKwargs takes the template's variables. One that the template does not use would be ignored in silence, but
// for enable_thinking, which clients send whatever the model. The template judges the values of all but that one,
// whose type it would not check.
func (w *Wire) readKwargs(o *web.Object) json.RawMessage {
	raw := o.Take("chat_template_kwargs")
	sub := o.Sub("chat_template_kwargs")
	if sub == nil {
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
