package openai

import (
	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/wire"
)

type chatChunk struct {
	head
	Choices []chunkChoice `json:"choices"`
	Usage   **wire.Usage  `json:"usage,omitempty"` // null in all but the last, where usage was asked for
	Slipway *wire.Note    `json:"slipway,omitempty"`
}

type chunkChoice struct {
	Index        int       `json:"index"`
	Delta        delta     `json:"delta"`
	Logprobs     *logprobs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

// delta is a step of an assistant's message.
type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning *string    `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// chatStream sends a reply as it comes. Its chunk is used again for every event.
type chatStream struct {
	out    *web.Stream
	chunk  chatChunk
	call   [1]toolCall
	text   string
	index  int
	points bool // logprobs are wanted
}

// streamChat sends the replies as they come, one after the other. The roles are sent at once, before the first token is
// computed.
func (w *Wire) streamChat(rec *web.Record, replies []*turn.Reply, q *turn.Request, how streaming) *turn.Error {
	s := &chatStream{out: web.OpenStream(rec), points: q.TopLogprobs >= 0}
	s.chunk = chatChunk{head: w.head("chatcmpl-", "chat.completion.chunk"), Choices: make([]chunkChoice, 1)}
	if how.includeUsage {
		s.chunk.Usage = new(*wire.Usage)
	}
	for i := range replies {
		s.chunk.Choices[0].Index = i
		if err := s.send(delta{Role: "assistant", Content: new(string)}, nil); err != nil {
			cancelAll(replies, err)
			return nil
		}
	}
	ends, failure, err := w.follow(rec, replies, func(i int, e turn.Event) error {
		s.chunk.Choices[0].Index = i
		return s.event(e)
	}, func() error { return s.send(delta{}, nil) })
	if err != nil {
		return nil // the client is gone
	}
	if failure != nil {
		s.out.Send(documentOf(failure))
		return failure
	}
	for i, end := range ends {
		finish := finishReasons[end.Finish()]
		s.chunk.Choices[0] = chunkChoice{Index: i, FinishReason: &finish}
		s.chunk.Slipway = web.NoteOf(end.Notice())
		if s.send(delta{}, nil) != nil {
			return nil
		}
	}
	if how.includeUsage {
		u := usageOf(ends, noticeOf(ends))
		if s.out.Send(chatChunk{head: s.chunk.head, Choices: []chunkChoice{}, Usage: &u}) != nil {
			return nil
		}
	}
	s.out.Raw(done)
	return nil
}

// done ends a stream that is complete; one that failed ends without it.
const done = "[DONE]"

func (s *chatStream) send(d delta, points *logprobs) error {
	s.chunk.Choices[0].Delta, s.chunk.Choices[0].Logprobs = d, points
	return s.out.Send(&s.chunk)
}

// event sends one step of the reply.
func (s *chatStream) event(e turn.Event) error {
	s.text, s.index = e.Text, e.Index
	switch e.Kind {
	case turn.Reasoning:
		return s.send(delta{Reasoning: &s.text}, nil)
	case turn.Content:
		var points *logprobs
		if s.points {
			points = &logprobs{Content: entriesOf(e.Tokens, nil)}
		}
		return s.send(delta{Content: &s.text}, points)
	case turn.CallStart:
		s.call[0] = toolCall{Index: &s.index, ID: e.ID, Type: "function", Function: functionCall{Name: e.Name}}
		return s.send(delta{ToolCalls: s.call[:]}, nil)
	case turn.CallArguments:
		s.call[0] = toolCall{Index: &s.index, Function: functionCall{Arguments: e.Text}}
		return s.send(delta{ToolCalls: s.call[:]}, nil)
	}
	return nil
}
