package openai

import (
	"encoding/json"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/text"
)

// readInput takes the items of input. What an assistant thought, said and called in a row is one message.
func (w *Wire) readInput(o *web.Object) []text.Message {
	raw := o.Peek("input")
	if len(raw) > 0 && raw[0] == '"' {
		said, _ := o.Text("input")
		return []text.Message{{Role: "user", Content: said}}
	}
	var messages []text.Message
	for i, raw := range o.Items("input") {
		item, err := web.ReadObject(web.Element("input", i), raw)
		if err == nil {
			messages, err = w.readItem(item, messages)
		}
		if err != nil {
			o.Keep(err)
			return nil
		}
	}
	return messages
}

// readItem takes an item onto the conversation.
func (w *Wire) readItem(o *web.Object, onto []text.Message) ([]text.Message, *turn.Error) {
	kind, given := o.Text("type")
	if !given && o.Has("role") {
		kind = "message"
	}
	o.Ignore("id", "status", "phase")
	switch kind {
	case "message":
		onto = readItemMessage(o, onto)
	case "reasoning":
		onto = readItemReasoning(o, onto)
	case "function_call":
		var last *text.Message
		onto, last = assistantOf(onto, false)
		last.ToolCalls = append(last.ToolCalls, readItemCall(o))
	case "function_call_output":
		m := text.Message{Role: "tool", Content: readItemOutput(o)}
		if m.ToolCallID, given = o.Text("call_id"); !given {
			o.Fail("call_id", "is required: the call that it answers")
		}
		onto = append(onto, m)
	case "item_reference":
		id, _ := o.Text("id")
		raw, err := w.kept.item(o.At("id"), id)
		if err != nil {
			return nil, err
		}
		item, err := web.ReadObject(o.At("id"), raw)
		if err != nil {
			return nil, err
		}
		return w.readItem(item, onto)
	default:
		o.Fail("type", "is %.40q; this server reads message, reasoning, function_call, function_call_output and "+
			"item_reference", kind)
	}
	return onto, o.Done()
}

// assistantOf gives the assistant's message that an item goes on with; begins says that it begins a new one.
func assistantOf(onto []text.Message, begins bool) ([]text.Message, *text.Message) {
	if n := len(onto) - 1; n >= 0 && onto[n].Role == "assistant" && !begins {
		return onto, &onto[n]
	}
	onto = append(onto, text.Message{Role: "assistant"})
	return onto, &onto[len(onto)-1]
}

func readItemMessage(o *web.Object, onto []text.Message) []text.Message {
	role, given := o.Text("role")
	if !given {
		o.Fail("role", "is required")
	}
	said := readItemContent(o, "content")
	switch role {
	case "assistant":
		onto, last := assistantOf(onto, false)
		last.Content += said
		return onto
	case "user":
	case "system", "developer":
		role = "system"
	default:
		o.Fail("role", "is %.40q; allowed: user, assistant, system, developer", role)
	}
	return append(onto, text.Message{Role: role, Content: said})
}

// readItemContent joins text: a string, or parts that follow each other as in a chat.
func readItemContent(o *web.Object, member string) string {
	raw := o.Peek(member)
	if len(raw) > 0 && raw[0] == '"' {
		said, _ := o.Text(member)
		return said
	}
	parts, given := o.Array(member)
	if !given {
		o.Fail(member, "is required")
	}
	var joined strings.Builder
	for i, raw := range parts {
		part, err := web.ReadObject(web.Element(o.At(member), i), raw)
		if err != nil {
			o.Keep(err)
			return ""
		}
		kind, _ := part.Text("type")
		from := "text"
		switch kind {
		case "input_text", "output_text", "reasoning_text", "summary_text":
		case "refusal":
			from = "refusal"
		default:
			part.Fail("type", "is %.40q; this server reads text (no images, audio or files)", kind)
		}
		said, given := part.Text(from)
		if !given {
			part.Fail(from, "is required")
		}
		part.Ignore("annotations", "logprobs")
		o.Keep(part.Done())
		joined.WriteString(said)
	}
	return joined.String()
}

// readItemReasoning takes thinking. What only another server can read, and summaries of it, are left out.
func readItemReasoning(o *web.Object, onto []text.Message) []text.Message {
	o.Ignore("encrypted_content", "summary")
	thought := ""
	if o.Has("content") {
		thought = readItemContent(o, "content")
	} else {
		o.Ignore("content")
	}
	if thought == "" {
		return onto
	}
	n := len(onto) - 1
	onto, last := assistantOf(onto, n >= 0 && (onto[n].Content != "" || len(onto[n].ToolCalls) > 0))
	if last.ReasoningContent != nil {
		thought = *last.ReasoningContent + "\n" + thought
	}
	last.ReasoningContent = &thought
	return onto
}

func readItemCall(o *web.Object) (c text.ToolCall) {
	given := false
	if c.ID, given = o.Text("call_id"); !given {
		o.Fail("call_id", "is required")
	}
	if c.Name, given = o.Text("name"); !given {
		o.Fail("name", "is required")
	}
	if space, given := o.Text("namespace"); given {
		c.Name = spaced(space, c.Name)
	}
	c.Arguments = turn.ReadArguments(o.Take("arguments"))
	return c
}

// readItemOutput reads what a tool gave: text, parts of text, or any other JSON, which is its own text.
func readItemOutput(o *web.Object) string {
	raw := o.Peek("output")
	if len(raw) > 0 && (raw[0] == '"' || raw[0] == '[' && areParts(raw)) {
		return readItemContent(o, "output")
	}
	if raw = o.Take("output"); raw == nil {
		return ""
	}
	return compact(raw)
}

// name is a function's in a namespace.
type name struct{ space, function string }

// spaced is how the model knows a function of a namespace.
func spaced(space, function string) string { return space + "." + function }

// readResponseTools takes tools, tool_choice and parallel_tool_calls.
func readResponseTools(o *web.Object, a *asked) {
	elements, _ := o.Array("tools")
	for i, raw := range elements {
		tools, err := readResponseTool(web.Element("tools", i), raw, "", a.spaces)
		o.Keep(err)
		a.turn.Tools = append(a.turn.Tools, tools...)
	}
	a.turn.Choice = readResponseChoice(o, len(a.turn.Tools) > 0)
	parallel, given := o.Boolean("parallel_tool_calls")
	a.turn.OneCall = given && !parallel
	a.echo.Parallel = !a.turn.OneCall
}

// readResponseTool takes a function, or a namespace of functions.
func readResponseTool(path string, raw json.RawMessage, space string, spaces map[string]name) ([]turn.Tool,
	*turn.Error) {
	o, err := web.ReadObject(path, raw)
	if err != nil {
		return nil, err
	}
	kind, _ := o.Text("type")
	if kind == "namespace" && space == "" {
		if space, _ = o.Text("name"); space == "" {
			o.Fail("name", "is required")
		}
		o.Ignore("description")
		var tools []turn.Tool
		elements, _ := o.Array("tools")
		for i, raw := range elements {
			more, err := readResponseTool(web.Element(o.At("tools"), i), raw, space, spaces)
			o.Keep(err)
			tools = append(tools, more...)
		}
		return tools, o.Done()
	}
	if kind != "function" {
		o.Fail("type", "is %.40q; this server runs no tools, and reads functions only. Leave it out (in Codex: "+
			"web_search = \"disabled\" in config.toml)", kind)
		return nil, o.Err()
	}
	t := turn.Tool{Param: path, Parameters: o.Raw("parameters")}
	t.Name, _ = o.Text("name")
	t.Description, _ = o.Text("description")
	t.Strict, _ = o.Boolean("strict")
	o.Only("defer_loading", "the model sees every tool", "false")
	if space != "" {
		spaces[spaced(space, t.Name)] = name{space, t.Name}
		t.Name = spaced(space, t.Name)
	}
	return []turn.Tool{t}, o.Done()
}

func readResponseChoice(o *web.Object, tools bool) turn.Choice {
	if raw := o.Peek("tool_choice"); len(raw) == 0 || raw[0] != '{' {
		return readToolChoice(o, tools)
	}
	c := turn.Choice{Param: "tool_choice", Calling: turn.CallNamed}
	sub := o.Sub("tool_choice")
	sub.Only("type", "a function is the only thing that can be chosen", `"function"`)
	given := false
	if c.Name, given = sub.Text("name"); !given {
		sub.Fail("name", "is required")
	}
	o.Keep(sub.Done())
	return c
}
