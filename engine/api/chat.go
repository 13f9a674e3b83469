package api

import (
	"net/http"

	"slipway/engine/serve"
)

// chat answers POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, rec *record) *Error {
	o, release, failure := s.body(w, r)
	defer release()
	if failure != nil {
		return failure
	}
	q, failure := s.readChat(o)
	if failure != nil {
		return failure
	}
	entry, ctx := s.opt.Engine.Ledger().Open(r.Context(), rec.id)
	defer entry.Drop() // where it is refused
	start := s.opt.Now()
	normalized := s.normalize(q)
	s.restoreThinking(&q.conversation)
	prompt, thinking, failure := s.prompt(q)
	if failure != nil {
		return failure
	}
	prompt, marks := s.recall(prompt, q.conversation.Tools)
	q.conversation.Messages = nil // may be large, and the reply long
	release()
	opening, mask := s.opening(q, thinking)
	reply, err := s.opt.Engine.Submit(ctx, serve.Request{
		ID: rec.id, Entry: entry, Prompt: prompt, Marks: marks, Opening: opening, MaxTokens: q.maxTokens, Sampling: q.params, Seed: q.seed, Mask: mask,
		TopLogprobs: q.topLogprobs, Watch: watch(q, thinking), Text: s.opt.Tokenizer.NewStream(), Tokenize: s.opt.Now().Sub(start),
	})
	if err != nil {
		return asError(err)
	}
	head := chatHead{ID: newID("chatcmpl-"), Created: s.opt.Now().Unix(), Model: s.opt.ModelID, Fingerprint: s.fingerprint()}
	a := s.newAssembler(q, thinking, s.callIDs(prompt, marks.Reply))
	a.normalized = normalized
	if q.stream {
		return s.streamChat(rec, reply, q, head, a)
	}
	return s.plainChat(rec, reply, head, a)
}

// chatHead is what every chunk and every whole reply begins with.
type chatHead struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	Model       string `json:"model"`
	Fingerprint string `json:"system_fingerprint"`
}

type note struct {
	Notice string `json:"notice"`
}

func noteOf(text string) *note {
	if text == "" {
		return nil
	}
	return &note{text}
}

type chatReply struct {
	chatHead
	Choices []chatChoice `json:"choices"`
	Usage   *usage       `json:"usage"`
	Slipway *note        `json:"slipway,omitempty"`
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

// plainChat sends the reply in one piece.
func (s *Server) plainChat(rec *record, reply *serve.Reply, head chatHead, a *assembler) *Error {
	p := &plain{rec}
	var whole []delta
	end, err := s.follow(rec, reply, func(e serve.Event) error {
		whole = append(whole, a.take(e)...)
		return nil
	}, p.idle)
	if err != nil {
		return nil // the client is gone
	}
	head.Object = "chat.completion"
	message, points := joinDeltas(whole, a.calls)
	said := alsoNormalized(a.notice(end, false), a.normalized)
	answer := chatReply{head, []chatChoice{{Message: message, Logprobs: points, FinishReason: a.finishReason(end, false)}},
		s.usageOf(end, a.reasoningTokens, said), noteOf(said)}
	return p.finish(answer, failureOf(end))
}

type chatChunk struct {
	chatHead
	Choices []chunkChoice `json:"choices"`
	Usage   **usage       `json:"usage,omitempty"` // null in all but the last, where usage was asked for
	Slipway *note         `json:"slipway,omitempty"`
}

type chunkChoice struct {
	Index        int       `json:"index"`
	Delta        delta     `json:"delta"`
	Logprobs     *logprobs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

// streamChat sends the reply as it comes. The role goes out at once, before the first token is computed.
func (s *Server) streamChat(rec *record, reply *serve.Reply, q *chatRequest, head chatHead, a *assembler) *Error {
	out := openStream(rec)
	head.Object = "chat.completion.chunk"
	chunk := func(d delta, finish *string, n *note) chatChunk {
		c := chatChunk{chatHead: head, Choices: []chunkChoice{{Delta: d, Logprobs: d.logprobs, FinishReason: finish}}, Slipway: n}
		if q.includeUsage {
			c.Usage = new(*usage)
		}
		return c
	}
	empty := ""
	if err := out.send(chunk(delta{Role: "assistant", Content: &empty}, nil, nil)); err != nil {
		reply.Cancel(err)
		return nil
	}
	end, err := s.follow(rec, reply, func(e serve.Event) error {
		for _, d := range a.take(e) {
			if err := out.send(chunk(d, nil, nil)); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return out.send(chunk(delta{}, nil, nil)) })
	if err != nil {
		return nil // the client is gone
	}
	if failure := failureOf(end); failure != nil {
		out.send(failure)
		return failure
	}
	finish, said := a.finishReason(end, true), alsoNormalized(a.notice(end, true), a.normalized)
	if out.send(chunk(delta{}, &finish, noteOf(said))) != nil {
		return nil
	}
	if q.includeUsage {
		u := s.usageOf(end, a.reasoningTokens, said)
		if out.send(chatChunk{chatHead: head, Choices: []chunkChoice{}, Usage: &u}) != nil {
			return nil
		}
	}
	out.done()
	return nil
}
