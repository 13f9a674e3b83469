package anthropic

import (
	"encoding/json"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/text"
)

// billing begins a block of Claude Code's system that changes with every request and is not meant for the model.
const billing = "x-anthropic-billing-header:"

// readSystem takes system.
func readSystem(o *web.Object) []text.Message {
	if !o.Has("system") {
		return nil
	}
	var parts []string
	eachBlock(o, "system", func(b *web.Object) {
		if part := readText(b); !strings.HasPrefix(part, billing) {
			parts = append(parts, part)
		}
	})
	if len(parts) == 0 {
		return nil
	}
	return []text.Message{{Role: "system", Content: strings.Join(parts, between)}}
}

// between is what blocks of text that a client wrote are joined with.
const between = "\n\n"

func readConversation(o *web.Object) []text.Message {
	var messages []text.Message
	for i, raw := range o.Items("messages") {
		m, err := web.ReadObject(web.Element("messages", i), raw)
		if err != nil {
			o.Keep(err)
			return nil
		}
		if !m.Has("content") {
			m.Fail("content", "is required")
		}
		switch role, _ := m.Text("role"); role {
		case "user":
			messages = append(messages, readUser(m)...)
		case "assistant":
			messages = append(messages, readAssistant(m))
		case "system":
			messages = append(messages, readLaterSystem(m))
		default:
			m.Fail("role", "is %.40q; allowed: user, assistant, system", role)
		}
		if err := m.Done(); err != nil {
			o.Keep(err)
			return nil
		}
	}
	return messages
}

// eachBlock hands each block of a member's content to read; a string is one block of text. Members that read does not
// take are refused.
func eachBlock(o *web.Object, name string, read func(block *web.Object)) {
	raw := o.Take(name)
	switch {
	case raw == nil:
		return
	case raw[0] == '"':
		block, err := web.ReadObject(o.At(name), []byte(`{"type":"text","text":`+string(raw)+`}`))
		if err != nil {
			panic(err) // an object
		}
		read(block)
		o.Keep(block.Err())
		return
	}
	blocks, _ := o.Array(name)
	for i, raw := range blocks {
		block, err := web.ReadObject(web.Element(o.At(name), i), raw)
		if err != nil {
			o.Keep(err)
			return
		}
		block.Ignore("cache_control")
		read(block)
		if err := block.Done(); err != nil {
			o.Keep(err)
			return
		}
	}
}

// readText takes a block that must be text.
func readText(b *web.Object) string {
	if kind, _ := b.Text("type"); kind != "text" {
		b.Fail("type", "is %.40q; this server reads text here (no images or documents)", kind)
		return ""
	}
	part, given := b.Text("text")
	if !given {
		b.Fail("text", "is required")
	}
	b.Ignore("citations")
	return part
}

// readUser takes a user's message: its text, and the results of tools, in their order.
func readUser(o *web.Object) (messages []text.Message) {
	var parts []string
	flush := func() {
		if parts != nil {
			messages = append(messages, text.Message{Role: "user", Content: strings.Join(parts, between)})
			parts = nil
		}
	}
	eachBlock(o, "content", func(b *web.Object) {
		var kind string
		if json.Unmarshal(b.Peek("type"), &kind); kind != "tool_result" {
			parts = append(parts, readText(b))
			return
		}
		flush()
		b.Ignore("type")
		messages = append(messages, readResult(b))
	})
	if flush(); messages == nil {
		messages = []text.Message{{Role: "user"}}
	}
	return messages
}

// readResult takes what a tool gave.
func readResult(o *web.Object) text.Message {
	m := text.Message{Role: "tool"}
	given := false
	if m.ToolCallID, given = o.Text("tool_use_id"); !given {
		o.Fail("tool_use_id", "is required: the id of the tool_use that it answers")
	}
	var parts []string
	eachBlock(o, "content", func(b *web.Object) { parts = append(parts, readText(b)) })
	if failed, _ := o.Boolean("is_error"); failed {
		parts = append([]string{"Error:"}, parts...)
	}
	m.Content = strings.Join(parts, "\n")
	return m
}

func readLaterSystem(o *web.Object) text.Message {
	var parts []string
	eachBlock(o, "content", func(b *web.Object) { parts = append(parts, readText(b)) })
	return text.Message{Role: "system", Content: strings.Join(parts, between)}
}

// readAssistant takes an assistant's message. Thinking without text was hidden by the client, not thought.
func readAssistant(o *web.Object) text.Message {
	m := text.Message{Role: "assistant"}
	var content strings.Builder
	var thinking []string
	eachBlock(o, "content", func(b *web.Object) {
		var kind string
		switch json.Unmarshal(b.Peek("type"), &kind); kind {
		case "thinking":
			b.Ignore("type", "signature")
			if thought, _ := b.Text("thinking"); thought != "" {
				thinking = append(thinking, thought)
			}
		case "redacted_thinking":
			b.Ignore("type", "data") // nobody here can read it
		case "tool_use":
			b.Ignore("type", "caller")
			m.ToolCalls = append(m.ToolCalls, readUse(b))
		case "text":
			content.WriteString(readText(b))
		default:
			b.Fail("type", "is %.40q; allowed here: text, thinking, redacted_thinking, tool_use", kind)
		}
	})
	m.Content = content.String()
	if thinking != nil {
		joined := strings.Join(thinking, "\n")
		m.ReasoningContent = &joined
	}
	return m
}

func readUse(o *web.Object) (c text.ToolCall) {
	given := false
	if c.ID, given = o.Text("id"); !given {
		o.Fail("id", "is required")
	}
	if c.Name, given = o.Text("name"); !given {
		o.Fail("name", "is required")
	}
	c.Arguments = turn.ReadArguments(o.Take("input"))
	return c
}
