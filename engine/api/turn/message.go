package turn

import "strings"

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
