package openai

import (
	"net/http"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/wire"
)

// chat answers POST /v1/chat/completions.
func (w *Wire) chat(rec *web.Record, r *http.Request) *turn.Error {
	return w.generate(rec, r, form{w.readChat, w.streamChat, w.plainChat})
}

type chatReply struct {
	head
	Choices []chatChoice `json:"choices"`
	Usage   *wire.Usage  `json:"usage"`
	Slipway *wire.Note   `json:"slipway,omitempty"`
}

type chatChoice struct {
	Index        int         `json:"index"`
	Message      chatMessage `json:"message"`
	Logprobs     *logprobs   `json:"logprobs"`
	FinishReason string      `json:"finish_reason"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in deltas
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// plainChat sends the replies in one piece.
func (w *Wire) plainChat(rec *web.Record, replies []*turn.Reply, q *turn.Request) *turn.Error {
	head := w.head("chatcmpl-", "chat.completion")
	p := web.Plain{Record: rec}
	said, answered := make([]turn.Collector, len(replies)), make([]bool, len(replies))
	ends, failure, err := w.follow(rec, replies, func(i int, e turn.Event) error {
		answered[i] = answered[i] || e.Kind == turn.Content
		said[i].Add(e)
		return nil
	}, p.Idle)
	if err != nil {
		return nil // the client is gone
	}
	if failure != nil {
		return p.Finish(nil, failure)
	}
	var choices []chatChoice
	for i, end := range ends {
		m := said[i].Message()
		choice := chatChoice{Index: i, Message: messageOf(m), FinishReason: finishReasons[end.Finish()]}
		if q.TopLogprobs >= 0 && answered[i] {
			choice.Logprobs = &logprobs{Content: entriesOf(m.Tokens, []tokenLogprob{})}
		}
		choices = append(choices, choice)
	}
	notice := noticeOf(ends)
	return p.Finish(chatReply{head, choices, usageOf(ends, notice), web.NoteOf(notice)}, nil)
}

func messageOf(m turn.Message) chatMessage {
	said := chatMessage{Role: "assistant", Reasoning: m.Reasoning}
	for _, c := range m.Calls {
		call := toolCall{ID: c.ID, Type: "function", Function: functionCall{c.Name, c.Arguments}}
		said.ToolCalls = append(said.ToolCalls, call)
	}
	if m.Content != "" || len(m.Calls) == 0 {
		said.Content = &m.Content
	}
	return said
}
