package ollama

import (
	"encoding/json"
	"time"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/wire"
)

// piece is a step of a stream, and a whole reply.
type piece struct {
	Model     string    `json:"model"`
	CreatedAt time.Time `json:"created_at"`
	Message   message   `json:"message"`
	Done      bool      `json:"done"`
	Reason    string    `json:"done_reason,omitempty"`
	*spent
	Slipway *wire.Note `json:"slipway,omitempty"`
}

// spent are the tokens and the nanoseconds of a reply.
type spent struct {
	Total       int64 `json:"total_duration"`
	Load        int64 `json:"load_duration"`
	PromptCount int   `json:"prompt_eval_count"`
	Prompt      int64 `json:"prompt_eval_duration"`
	Count       int   `json:"eval_count"`
	Eval        int64 `json:"eval_duration"`
}

type message struct {
	Role     string `json:"role"`
	Content  string `json:"content"`
	Thinking string `json:"thinking,omitempty"`
	Calls    []call `json:"tool_calls,omitempty"`
}

type call struct {
	ID       string   `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Index     int             `json:"index"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (w *Wire) piece(m message) piece {
	m.Role = "assistant"
	return piece{Model: w.turns.Model().ID, CreatedAt: w.turns.Now().UTC(), Message: m}
}

func callsOf(calls []turn.Call, from int) (list []call) {
	for i, c := range calls[from:] {
		list = append(list, call{c.ID, function{from + i, c.Name, json.RawMessage(c.Arguments)}})
	}
	return list
}

// last gives the piece that ends a reply.
func (w *Wire) last(m message, end *turn.End) piece {
	p := w.piece(m)
	p.Done, p.Reason = true, "stop"
	if end.Finish() == turn.FinishLength {
		p.Reason = "length"
	}
	t := end.Times
	p.spent = &spent{Total: (t.Tokenize + t.Queue + t.Prefill + t.Decode).Nanoseconds(),
		PromptCount: end.Usage.PromptTokens(), Prompt: t.Prefill.Nanoseconds(),
		Count: end.Usage.CompletionTokens, Eval: t.Decode.Nanoseconds()}
	p.Slipway = web.NoteOf(end.Notice())
	return p
}

// plain sends the reply in one piece.
func (w *Wire) plain(rec *web.Record, reply *turn.Reply) *turn.Error {
	p := web.Plain{Record: rec}
	var said turn.Collector
	end, err := web.Follow(rec, reply, w.keepAlive, func(e turn.Event) error {
		said.Add(e)
		return nil
	}, p.Idle)
	if err != nil {
		return nil // the client is gone
	}
	m := said.Message()
	return p.Finish(w.last(message{Content: m.Content, Thinking: m.Reasoning, Calls: callsOf(m.Calls, 0)}, end),
		end.Failure)
}

// stream sends the reply as it comes, a line for each step.
func (w *Wire) stream(rec *web.Record, reply *turn.Reply) *turn.Error {
	out := web.OpenLines(rec)
	var said turn.Collector
	send := func(m message) error { return out.Send(w.piece(m)) }
	idle := func() error { return send(message{}) }
	if err := idle(); err != nil { // the head and something is sent at once
		reply.Cancel(err)
		return nil
	}
	end, err := web.Follow(rec, reply, w.keepAlive, func(e turn.Event) error {
		said.Add(e)
		switch e.Kind {
		case turn.Reasoning:
			return send(message{Thinking: e.Text})
		case turn.Content:
			return send(message{Content: e.Text})
		case turn.CallEnd:
			return send(message{Calls: callsOf(said.Message().Calls, e.Index)})
		}
		return nil
	}, idle)
	if err != nil {
		return nil // the client is gone
	}
	if end.Failure != nil {
		out.Send(errorDocument{end.Failure.Sentence})
		return end.Failure
	}
	out.Send(w.last(message{}, end))
	return nil
}
