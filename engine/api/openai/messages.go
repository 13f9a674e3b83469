package openai

import (
	"encoding/json"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/text"
)

// readMessages takes a conversation apart. Order, roles and tool ids are judged here only where a template could not;
// the template has the last word.
func readMessages(o *web.Object) []text.Message {
	elements, given := o.Array("messages")
	if !given || len(elements) == 0 {
		o.Fail("messages", "is required and must hold at least one message")
		return nil
	}
	messages := make([]text.Message, 0, len(elements))
	for i, raw := range elements {
		m, err := readMessage(web.Element("messages", i), raw)
		if err != nil {
			o.Keep(err)
			return nil
		}
		messages = append(messages, m)
	}
	return messages
}

func readMessage(path string, raw json.RawMessage) (text.Message, *turn.Error) {
	o, err := web.ReadObject(path, raw)
	if err != nil {
		return text.Message{}, err
	}
	m := text.Message{}
	role, given := o.Text("role")
	if !given {
		o.Fail("role", "is required")
	}
	m.Role = role
	m.Name, _ = o.Text("name")
	o.Ignore("cache_control")
	switch role {
	case "developer":
		m.Role = "system" // OpenAI's newer name for it
		m.Content = readContent(o, true)
	case "system", "user":
		m.Content = readContent(o, true)
	case "assistant":
		m.ToolCalls = readToolCalls(o)
		m.Content = readContent(o, len(m.ToolCalls) == 0)
		if thinking, given := o.Text("reasoning_content"); given {
			m.ReasoningContent = &thinking
		}
		o.Ignore("annotations")
	case "tool":
		m.Content = readContent(o, true)
		if m.ToolCallID, given = o.Text("tool_call_id"); !given {
			o.Fail("tool_call_id", "is required in a tool message: the id of the call that it answers")
		}
	default:
		o.Fail("role", "is %.40q; allowed: system, developer, user, assistant, tool", role)
	}
	return m, o.Done()
}

// readContent joins a message's text. Parts follow each other without anything between them, as the templates of this
// family write them.
func readContent(o *web.Object, required bool) string {
	raw := o.Take("content")
	switch {
	case raw == nil:
		if required {
			o.Fail("content", "is required")
		}
		return ""
	case raw[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			o.Fail("content", "is not a string")
		}
		return s
	case raw[0] != '[':
		o.Fail("content", "must be a string or an array of parts, not %s", web.KindOf(raw))
		return ""
	}
	parts, _ := o.Array("content")
	var joined strings.Builder
	for i, raw := range parts {
		part, err := web.ReadObject(web.Element(o.At("content"), i), raw)
		if err != nil {
			o.Keep(err)
			return ""
		}
		if kind, _ := part.Text("type"); kind != "text" {
			part.Fail("type", "is %.40q; this server reads text parts only (no images, audio or files)", kind)
		}
		s, given := part.Text("text")
		if !given {
			part.Fail("text", "is required")
		}
		part.Ignore("cache_control")
		if err := part.Done(); err != nil {
			o.Keep(err)
			return ""
		}
		joined.WriteString(s)
	}
	return joined.String()
}

// readToolCalls takes the calls of an assistant turn in the history.
func readToolCalls(o *web.Object) []text.ToolCall {
	elements, _ := o.Array("tool_calls")
	var calls []text.ToolCall
	for i, raw := range elements {
		call, err := web.ReadObject(web.Element(o.At("tool_calls"), i), raw)
		if err != nil {
			o.Keep(err)
			return nil
		}
		var c text.ToolCall
		given := false
		if c.ID, given = call.Text("id"); !given {
			call.Fail("id", "is required")
		}
		call.Only("type", "functions are the only tools here", `"function"`)
		call.Ignore("index")
		if raw := call.Take("function"); raw == nil {
			call.Fail("function", "is required")
		} else if f, err := web.ReadObject(call.At("function"), raw); err != nil {
			call.Keep(err)
		} else {
			if c.Name, given = f.Text("name"); !given {
				f.Fail("name", "is required")
			}
			arguments, given := f.Text("arguments")
			if !given {
				f.Fail("arguments", "is required: a string that holds a JSON object")
			} else if args := strings.TrimSpace(arguments); args != "" &&
				(args[0] != '{' || !json.Valid([]byte(args))) {
				f.Fail("arguments", "must be a string that holds a JSON object")
			}
			c.Arguments = json.RawMessage(arguments)
			call.Keep(f.Done())
		}
		if err := call.Done(); err != nil {
			o.Keep(err)
			return nil
		}
		calls = append(calls, c)
	}
	return calls
}
