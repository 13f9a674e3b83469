package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/text"
)

// readMessages takes a conversation apart. Order, roles and tool ids are judged here only where a template could not;
// the template has the last word.
func readMessages(o *web.Object) []text.Message {
	elements := o.Items("messages")
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
	o.Ignore(withoutEffect...)
	switch role {
	case "developer":
		m.Role = "system" // OpenAI's newer name for it
		m.Content = readContent(o, true)
	case "system", "user":
		m.Content = readContent(o, true)
	case "assistant":
		m.ToolCalls = readToolCalls(o)
		m.Content = readContent(o, false)
		thinking, given := o.Text("reasoning_content")
		other, alias := o.Text("reasoning")
		switch {
		case given && alias && thinking != other:
			o.Fail("reasoning", "differs from reasoning_content, which is the same thing; give one of them")
		case given:
			m.ReasoningContent = &thinking
		case alias:
			m.ReasoningContent = &other
		}
		for _, name := range []string{"prefix", "partial"} {
			wanted, _ := o.Boolean(name)
			m.Partial = m.Partial || wanted
		}
	case "tool":
		m.Content = readToolContent(o)
		if m.ToolCallID, given = o.Text("tool_call_id"); !given {
			o.Fail("tool_call_id", "is required in a tool message: the id of the call that it answers")
		}
	default:
		o.Fail("role", "is %.40q; allowed: system, developer, user, assistant, tool", role)
	}
	return m, o.Done()
}

// withoutEffect are members of messages that clients keep from replies, ours or others'. No template is given them.
var withoutEffect = []string{"cache_control", "id", "refusal", "annotations", "provider_specific_fields",
	"reasoning_details", "extra_content"}

// readToolContent reads what a tool gave: text, text parts, nothing, or any other JSON, which is its own text.
func readToolContent(o *web.Object) string {
	raw := o.Take("content")
	switch {
	case raw == nil:
		return ""
	case raw[0] == '"' || raw[0] == '[' && areParts(raw):
		return readContent(o, false)
	}
	return compact(raw)
}

// compact writes JSON without white space between its parts.
func compact(raw json.RawMessage) string {
	var compact bytes.Buffer
	json.Compact(&compact, raw)
	return compact.String()
}

// areParts reports whether an array is a list of content parts.
func areParts(raw json.RawMessage) bool {
	for _, element := range web.ReadArray(raw) {
		var part struct{ Type *string }
		if json.Unmarshal(element, &part) != nil || part.Type == nil {
			return false
		}
	}
	return true
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
		call.Ignore("index", "provider_specific_fields", "extra_content")
		if f := call.Sub("function"); f == nil {
			call.Fail("function", "is required")
		} else {
			if c.Name, given = f.Text("name"); !given {
				f.Fail("name", "is required")
			}
			c.Arguments = turn.ReadArguments(f.Take("arguments"))
			f.Ignore("provider_specific_fields", "extra_content")
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
