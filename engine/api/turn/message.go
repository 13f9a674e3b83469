package turn

import (
	"encoding/json"
	"reflect"
	"strings"

	"slipway/engine/serve"
	"slipway/engine/text"
	"slipway/engine/text/family"
)

// Message is what a reply says as a whole.
type Message struct {
	Reasoning, Content string
	Calls              []Call
	Tokens             []Token
}

// Call is one complete tool call. Arguments is a JSON object.
type Call struct{ ID, Name, Arguments string }

// Collector joins the events of a reply to a message.
type Collector struct {
	reasoning, content strings.Builder
	calls              []Call
	tokens             []Token
}

// Add takes the next event.
func (c *Collector) Add(e Event) {
	switch e.Kind {
	case Reasoning:
		c.reasoning.WriteString(e.Text)
	case Content:
		c.content.WriteString(e.Text)
		c.tokens = append(c.tokens, e.Tokens...)
	case CallStart:
		c.calls = append(c.calls, Call{ID: e.ID, Name: e.Name})
	case CallArguments:
		c.calls[len(c.calls)-1].Arguments += e.Text
	}
}

// Message gives the reply so far.
func (c *Collector) Message() Message {
	return Message{c.reasoning.String(), c.content.String(), c.calls, c.tokens}
}

// saying is a message that can be compared: white space around it and the writing of the arguments do not count.
type saying struct {
	reasoning, content string
	calls              []sayingCall
	broken             bool // arguments that are no JSON
}

type sayingCall struct {
	name      string
	arguments any
}

// readTurn reads an assistant's turn from its text.
func readTurn(f *family.Family, whole string, tools []json.RawMessage) saying {
	parser := f.NewParser(family.ParserOptions{Tools: tools})
	r := Reply{reading: &reading{parser: parser}, callID: func(int) string { return "" }}
	for _, e := range r.reading.push(whole, serve.FinishStop) {
		r.step(e)
	}
	var c Collector
	for _, e := range r.events {
		c.Add(e)
	}
	m := c.Message()
	said := saying{reasoning: strings.TrimSpace(m.Reasoning), content: strings.TrimSpace(m.Content)}
	for _, call := range m.Calls {
		said.addCall(call.Name, call.Arguments)
	}
	return said
}

func sayingOf(m text.Message) saying {
	said := saying{content: strings.TrimSpace(m.Content)}
	for _, call := range m.ToolCalls {
		said.addCall(call.Name, string(call.Arguments))
	}
	return said
}

func (s *saying) addCall(name, arguments string) {
	c := sayingCall{name: name}
	decoder := json.NewDecoder(strings.NewReader(arguments))
	decoder.UseNumber()
	if decoder.Decode(&c.arguments) != nil {
		s.broken = true
	}
	s.calls = append(s.calls, c)
}

// equal reports whether two turns say the same. One with broken arguments equals none.
func (s saying) equal(o saying) bool {
	return !s.broken && !o.broken && s.reasoning == o.reasoning && s.content == o.content &&
		reflect.DeepEqual(s.calls, o.calls)
}
