package api

import (
	"errors"
	"strings"

	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// delta is a step of an assistant's message.
type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning *string    `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`

	logprobs *logprobs // of the content
}

type logprobs struct {
	Content []tokenLogprob `json:"content"`
	Refusal *string        `json:"refusal"`
}

type tokenLogprob struct {
	Token   string       `json:"token"`
	Logprob float64      `json:"logprob"`
	Bytes   []int        `json:"bytes"`
	Top     []topLogprob `json:"top_logprobs"`
}

type topLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// assembler turns a reply's events into steps of a message: thinking, content, tool calls.
type assembler struct {
	tokenizer     *text.Tokenizer
	parser        *text.OutputParser
	withLogprobs  bool
	parallelCalls bool

	waiting         []tokenLogprob // of tokens whose text is not out yet
	thinking        bool           // no content and no call yet in a reply that began with thinking
	thought         bool           // there was thinking
	answered        bool           // there was content or a call
	calls           int            // complete ones
	full            bool           // the one call that was wanted is complete
	reasoningTokens int
}

func (s *Server) newAssembler(q *chatRequest, thinking bool) *assembler {
	return &assembler{
		tokenizer:     s.opt.Tokenizer,
		parser:        text.NewOutputParser(text.ParserOptions{ThinkingOpen: thinking, Tools: q.conversation.Tools}),
		withLogprobs:  q.topLogprobs >= 0,
		parallelCalls: q.parallelCalls,
		thinking:      thinking,
	}
}

// take gives the steps that an event makes certain.
func (a *assembler) take(e serve.Event, reply *serve.Reply) []delta {
	if a.full {
		return nil
	}
	if e.Token != nil {
		a.note(*e.Token)
	}
	events := a.parser.Push(e.Text)
	if e.End != nil {
		events = append(events, a.parser.Close()...)
	}
	var steps []delta
	for _, event := range events {
		step, any := a.step(event)
		if any {
			steps = append(steps, step)
		}
		if a.calls > 0 && !a.parallelCalls {
			a.full = true
			reply.Cancel(errOneCall)
			break
		}
	}
	if e.Token != nil && a.thinking {
		a.reasoningTokens++
	}
	return steps
}

// step translates one event of the parser.
func (a *assembler) step(event text.Event) (delta, bool) {
	switch event.Kind {
	case text.ReasoningDelta:
		a.thought = true
		a.waiting = nil
		piece := event.Text
		return delta{Reasoning: &piece}, true
	case text.ContentDelta:
		a.thinking, a.answered = false, a.answered || strings.TrimSpace(event.Text) != ""
		piece := event.Text
		d := delta{Content: &piece}
		if a.withLogprobs {
			d.logprobs = &logprobs{Content: a.waiting}
			a.waiting = nil
		}
		return d, true
	case text.ToolCallStart:
		a.thinking, a.answered = false, true
		a.waiting = nil
		index := event.Index
		return delta{ToolCalls: []toolCall{{Index: &index, ID: newID("call_"), Type: "function", Function: functionCall{Name: event.Name}}}}, true
	case text.ToolCallArguments:
		index := event.Index
		return delta{ToolCalls: []toolCall{{Index: &index, Function: functionCall{Arguments: event.Text}}}}, true
	case text.ToolCallEnd:
		a.calls++
	}
	return delta{}, false
}

// note keeps a token's logprobs until its text comes out as content. Forced tokens and tags have none.
func (a *assembler) note(t serve.Token) {
	if !a.withLogprobs || t.Forced || a.tokenizer.IsSpecial(t.ID) {
		return
	}
	entry := tokenLogprob{Token: a.tokenizer.Decode([]int32{t.ID}), Logprob: t.Logprob.Logprob, Bytes: bytesOf(a.tokenizer, t.ID), Top: []topLogprob{}}
	for _, top := range t.Top {
		entry.Top = append(entry.Top, topOf(a.tokenizer, top))
	}
	a.waiting = append(a.waiting, entry)
}

func topOf(tokenizer *text.Tokenizer, l sample.Logprob) topLogprob {
	return topLogprob{tokenizer.Decode([]int32{l.ID}), l.Logprob, bytesOf(tokenizer, l.ID)}
}

func bytesOf(tokenizer *text.Tokenizer, id int32) []int {
	bytes := []int{}
	for _, b := range tokenizer.TokenBytes(id) {
		bytes = append(bytes, int(b))
	}
	return bytes
}

// failure is the error of a reply that did not end well. Ending after the one call that was wanted is well.
func (a *assembler) failure(end *serve.End) *Error {
	if a.full && errors.Is(end.Err, errOneCall) {
		return nil
	}
	return failureOf(end)
}

// finishReason gives OpenAI's word.
func (a *assembler) finishReason(end *serve.End) string {
	switch {
	case end.Reason == serve.FinishLength:
		return "length"
	case a.calls > 0:
		return "tool_calls"
	}
	return "stop"
}

// joinDeltas makes the message that a client would put together from the steps.
func joinDeltas(steps []delta) (chatMessage, *logprobs) {
	m := chatMessage{Role: "assistant"}
	var content, thinking strings.Builder
	var points *logprobs
	for _, d := range steps {
		if d.Content != nil {
			content.WriteString(*d.Content)
		}
		if d.Reasoning != nil {
			thinking.WriteString(*d.Reasoning)
		}
		if d.logprobs != nil {
			if points == nil {
				points = &logprobs{Content: []tokenLogprob{}}
			}
			points.Content = append(points.Content, d.logprobs.Content...)
		}
		for _, c := range d.ToolCalls {
			if c.ID != "" {
				c.Index = nil
				m.ToolCalls = append(m.ToolCalls, c)
			} else {
				m.ToolCalls[len(m.ToolCalls)-1].Function.Arguments += c.Function.Arguments
			}
		}
	}
	if text := content.String(); text != "" || len(m.ToolCalls) == 0 {
		m.Content = &text
	}
	m.Reasoning = thinking.String()
	return m, points
}
