package api

import (
	"fmt"
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
	tokenizer    *text.Tokenizer
	reading      *reading
	withLogprobs bool
	issue        func(index int) string // ids of calls

	waiting         []tokenLogprob // of tokens whose text is not out yet
	thinking        bool           // no content and no call yet in a reply that began with thinking
	thought         bool           // there was thinking
	answered        bool           // there was content or a call
	opening         *delta         // of the call whose arguments have not begun
	begun, calls    int            // calls whose opening is out, and complete ones
	reasoningTokens int
	normalized      int // places of the prompt that rules changed
}

func (s *Server) newAssembler(q *chatRequest, thinking bool, issue func(index int) string) *assembler {
	return &assembler{
		issue:        issue,
		tokenizer:    s.opt.Tokenizer,
		reading:      newReading(q, thinking),
		withLogprobs: q.topLogprobs >= 0,
		thinking:     thinking,
	}
}

// take gives the steps that an event makes certain.
func (a *assembler) take(e serve.Event) []delta {
	if e.Token != nil {
		a.note(*e.Token)
	}
	var steps []delta
	for _, event := range a.reading.push(e.Text, e.End != nil) {
		steps = append(steps, a.step(event)...)
	}
	if e.Token != nil && a.thinking {
		a.reasoningTokens++
	}
	return steps
}

// step translates one event of the parser. A call's opening waits for the first of its arguments: a client that takes no
// arguments for empty ones must not be left with a call that was cut off behind its name.
func (a *assembler) step(event text.Event) []delta {
	switch event.Kind {
	case text.ReasoningDelta:
		a.thought = true
		a.waiting = nil
		piece := event.Text
		return []delta{{Reasoning: &piece}}
	case text.ContentDelta:
		a.thinking, a.answered = false, a.answered || strings.TrimSpace(event.Text) != ""
		piece := event.Text
		d := delta{Content: &piece}
		if a.withLogprobs {
			d.logprobs = &logprobs{Content: a.waiting}
			a.waiting = nil
		}
		return []delta{d}
	case text.ToolCallStart:
		a.thinking, a.answered = false, true
		a.waiting = nil
		index := event.Index
		a.opening = &delta{ToolCalls: []toolCall{{Index: &index, ID: a.issue(index), Type: "function", Function: functionCall{Name: event.Name}}}}
	case text.ToolCallArguments:
		index := event.Index
		steps := []delta{{ToolCalls: []toolCall{{Index: &index, Function: functionCall{Arguments: event.Text}}}}}
		if a.opening != nil {
			steps = append([]delta{*a.opening}, steps...)
			a.opening = nil
			a.begun++
		}
		return steps
	case text.ToolCallEnd:
		a.calls++
	}
	return nil
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

// finishReason gives OpenAI's word. A stream that has begun a call and not finished it never says tool_calls.
func (a *assembler) finishReason(end *serve.End, stream bool) string {
	switch {
	case end.Reason == serve.FinishLength:
		return "length"
	case a.calls > 0 && !(stream && a.begun > a.calls):
		return "tool_calls"
	}
	return "stop"
}

// notice tells in words what the finish reason alone leaves open.
func (a *assembler) notice(end *serve.End, stream bool) string {
	if !a.reading.unfinished() {
		return notice(end, a.thought, a.answered)
	}
	what := "it is left out"
	if stream && a.begun > a.calls {
		what = "its arguments are not whole and it must not be run"
	}
	if end.Reason == serve.FinishLength {
		return fmt.Sprintf("The reply ran out of its %d tokens inside a tool call; %s. Allow more tokens.", end.LimitTokens, what)
	}
	return "The model ended its reply inside a tool call; " + what + ". Ask again."
}

// joinDeltas makes the message that a client would put together from the steps, less a call that was cut off: only the
// first complete calls are whole.
func joinDeltas(steps []delta, complete int) (chatMessage, *logprobs) {
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
	m.ToolCalls = m.ToolCalls[:min(len(m.ToolCalls), complete)]
	if text := content.String(); text != "" || len(m.ToolCalls) == 0 {
		m.Content = &text
	}
	m.Reasoning = thinking.String()
	return m, points
}
