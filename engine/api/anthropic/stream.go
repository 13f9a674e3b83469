package anthropic

import (
	"encoding/json"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/wire"
)

// stream is a reply as its events are sent.
type stream struct {
	out      *web.Stream
	kind     string // of the open block; empty: none
	index    int    // of the open block, or of the next
	thinking strings.Builder
}

type blockEvent struct {
	Type         string `json:"type"`
	Index        int    `json:"index"`
	ContentBlock *block `json:"content_block,omitempty"`
	Delta        *delta `json:"delta,omitempty"`
}

type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text,omitempty"`
	Thinking    string `json:"thinking,omitempty"`
	Signature   string `json:"signature,omitempty"`
	PartialJSON string `json:"partial_json,omitempty"`
}

type messageStart struct {
	Type    string  `json:"type"`
	Message message `json:"message"`
}

type messageDelta struct {
	Type  string `json:"type"`
	Delta struct {
		StopReason   string  `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
	} `json:"delta"`
	Usage   usage      `json:"usage"`
	Slipway *wire.Note `json:"slipway,omitempty"`
}

type bare struct {
	Type string `json:"type"`
}

// stream sends the reply as it comes. message_start is sent at once, before the first token is computed.
func (w *Wire) stream(rec *web.Record, reply *turn.Reply) *turn.Error {
	s := &stream{out: web.OpenStream(rec)}
	m := w.newMessage()
	m.Usage.InputTokens = reply.PromptTokens
	if err := s.out.Event("message_start", messageStart{"message_start", m}); err != nil {
		reply.Cancel(err)
		return nil
	}
	end, err := web.Follow(rec, reply, w.keepAlive, s.event, s.ping)
	if err != nil {
		return nil // the client is gone
	}
	if end.Failure != nil {
		s.out.Event("error", documentOf(end.Failure))
		return end.Failure
	}
	if s.close() != nil {
		return nil
	}
	notice := end.Notice()
	last := messageDelta{Type: "message_delta", Usage: usageOf(end, notice), Slipway: web.NoteOf(notice)}
	last.Delta.StopReason, last.Delta.StopSequence = stopOf(end)
	if s.out.Event(last.Type, last) == nil {
		s.out.Event("message_stop", bare{"message_stop"})
	}
	return nil
}

func (s *stream) ping() error { return s.out.Event("ping", bare{"ping"}) }

// event sends one step of the reply, in a block of its kind.
func (s *stream) event(e turn.Event) error {
	kind := kindOf[e.Kind]
	if kind == "" {
		return nil
	}
	if e.Kind == turn.CallStart || s.kind != kind {
		if err := s.open(kind, e); err != nil {
			return err
		}
	}
	switch e.Kind {
	case turn.Reasoning:
		s.thinking.WriteString(e.Text)
		return s.delta(delta{Type: "thinking_delta", Thinking: e.Text})
	case turn.Content:
		return s.delta(delta{Type: "text_delta", Text: e.Text})
	case turn.CallArguments:
		return s.delta(delta{Type: "input_json_delta", PartialJSON: e.Text})
	}
	return nil
}

func (s *stream) delta(d delta) error {
	return s.out.Event("content_block_delta", blockEvent{Type: "content_block_delta", Index: s.index, Delta: &d})
}

// open begins a block, and ends the one before.
func (s *stream) open(kind string, e turn.Event) error {
	if err := s.close(); err != nil {
		return err
	}
	s.kind = kind
	b := &block{Type: kind, ID: e.ID, Name: e.Name}
	switch kind {
	case "thinking":
		s.thinking.Reset()
		b.Thinking, b.Signature = new(string), new(string)
	case "text":
		b.Text = new(string)
	case "tool_use":
		b.Input = json.RawMessage("{}")
	}
	return s.out.Event("content_block_start", blockEvent{Type: "content_block_start", Index: s.index, ContentBlock: b})
}

// close ends the open block, if there is one.
func (s *stream) close() error {
	if s.kind == "" {
		return nil
	}
	if s.kind == "thinking" {
		signature := delta{Type: "signature_delta", Signature: signatureOf(s.thinking.String())}
		if err := s.delta(signature); err != nil {
			return err
		}
	}
	err := s.out.Event("content_block_stop", blockEvent{Type: "content_block_stop", Index: s.index})
	s.kind = ""
	s.index++
	return err
}
