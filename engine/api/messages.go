package api

import (
	"encoding/json"
	"strings"

	"slipway/engine/text"
)

// readMessages takes a conversation apart. Order, roles and tool ids are judged here only where a template could not;
// the template has the last word.
func readMessages(o *object) []text.Message {
	elements, given := o.array("messages")
	if !given || len(elements) == 0 {
		o.fail("messages", "is required and must hold at least one message")
		return nil
	}
	messages := make([]text.Message, 0, len(elements))
	for i, raw := range elements {
		m, err := readMessage(element("messages", i), raw)
		if err != nil {
			o.keep(err)
			return nil
		}
		messages = append(messages, m)
	}
	return messages
}

func readMessage(path string, raw json.RawMessage) (text.Message, *Error) {
	o, err := readObject(path, raw)
	if err != nil {
		return text.Message{}, err
	}
	m := text.Message{}
	role, given := o.str("role")
	if !given {
		o.fail("role", "is required")
	}
	m.Role = role
	m.Name, _ = o.str("name")
	o.ignore("cache_control")
	switch role {
	case "developer":
		m.Role = "system" // OpenAI's newer name for it
		m.Content = readContent(o, true)
	case "system", "user":
		m.Content = readContent(o, true)
	case "assistant":
		m.ToolCalls = readToolCalls(o)
		m.Content = readContent(o, len(m.ToolCalls) == 0)
		if thinking, given := o.str("reasoning_content"); given {
			m.ReasoningContent = &thinking
		}
		o.ignore("annotations")
	case "tool":
		m.Content = readContent(o, true)
		if m.ToolCallID, given = o.str("tool_call_id"); !given {
			o.fail("tool_call_id", "is required in a tool message: the id of the call that it answers")
		}
	default:
		o.fail("role", "is %.40q; allowed: system, developer, user, assistant, tool", role)
	}
	return m, o.done()
}

// readContent joins a message's text. Parts follow each other without anything between them, as the templates of this
// family write them.
func readContent(o *object, required bool) string {
	raw := o.take("content")
	switch {
	case raw == nil:
		if required {
			o.fail("content", "is required")
		}
		return ""
	case raw[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			o.fail("content", "is not a string")
		}
		return s
	case raw[0] != '[':
		o.fail("content", "must be a string or an array of parts, not %s", kindOf(raw))
		return ""
	}
	parts, _ := o.array("content")
	var joined strings.Builder
	for i, raw := range parts {
		part, err := readObject(element(o.at("content"), i), raw)
		if err != nil {
			o.keep(err)
			return ""
		}
		if kind, _ := part.str("type"); kind != "text" {
			part.fail("type", "is %.40q; this server reads text parts only (no images, audio or files)", kind)
		}
		s, given := part.str("text")
		if !given {
			part.fail("text", "is required")
		}
		part.ignore("cache_control")
		if err := part.done(); err != nil {
			o.keep(err)
			return ""
		}
		joined.WriteString(s)
	}
	return joined.String()
}

// readToolCalls takes the calls of an assistant turn that comes back as history.
func readToolCalls(o *object) []text.ToolCall {
	elements, _ := o.array("tool_calls")
	var calls []text.ToolCall
	for i, raw := range elements {
		call, err := readObject(element(o.at("tool_calls"), i), raw)
		if err != nil {
			o.keep(err)
			return nil
		}
		var c text.ToolCall
		given := false
		if c.ID, given = call.str("id"); !given {
			call.fail("id", "is required")
		}
		call.only("type", "functions are the only tools here", `"function"`)
		call.ignore("index")
		if raw := call.take("function"); raw == nil {
			call.fail("function", "is required")
		} else if f, err := readObject(call.at("function"), raw); err != nil {
			call.keep(err)
		} else {
			if c.Name, given = f.str("name"); !given {
				f.fail("name", "is required")
			}
			arguments, given := f.str("arguments")
			if !given {
				f.fail("arguments", "is required: a string that holds a JSON object")
			} else if args := strings.TrimSpace(arguments); args != "" && (args[0] != '{' || !json.Valid([]byte(args))) {
				f.fail("arguments", "must be a string that holds a JSON object")
			}
			c.Arguments = json.RawMessage(arguments)
			call.keep(f.done())
		}
		if err := call.done(); err != nil {
			o.keep(err)
			return nil
		}
		calls = append(calls, c)
	}
	return calls
}
