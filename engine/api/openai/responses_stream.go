package openai

import (
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// responseEvent is an event of a stream. Of its members, those of its type are there.
type responseEvent struct {
	Type         string    `json:"type"`
	Sequence     int       `json:"sequence_number"`
	Response     *response `json:"response,omitempty"`
	OutputIndex  *int      `json:"output_index,omitempty"`
	ContentIndex *int      `json:"content_index,omitempty"`
	ItemID       string    `json:"item_id,omitempty"`
	Item         *item     `json:"item,omitempty"`
	Part         *part     `json:"part,omitempty"`
	Name         string    `json:"name,omitempty"`
	Delta        string    `json:"delta,omitempty"`
	Text         *string   `json:"text,omitempty"`
	Arguments    *string   `json:"arguments,omitempty"`
	Logprobs     *[]any    `json:"logprobs,omitempty"`
}

// responseStream sends a response as it comes.
type responseStream struct {
	out      *web.Stream
	asked    *asked
	response response
	sequence int
	open     bool // the last item of the response's output is under way
	whole    strings.Builder
}

// names of the events that carry an item's text.
var textEvents = map[string]string{"reasoning": "response.reasoning_text", "message": "response.output_text",
	"function_call": "response.function_call_arguments"}

// newResponseStream sends the head and that the response has begun.
func (w *Wire) newResponseStream(rec *web.Record, a *asked) *responseStream {
	s := &responseStream{out: web.OpenStream(rec), asked: a, response: w.newResponse(a)}
	begun := s.response
	s.send("response.created", responseEvent{Response: &begun})
	return s
}

func (s *responseStream) send(kind string, e responseEvent) error {
	e.Type, e.Sequence = kind, s.sequence
	s.sequence++
	return s.out.Event(kind, e)
}

func (w *Wire) streamResponse(rec *web.Record, reply *turn.Reply, a *asked) *turn.Error {
	s := w.newResponseStream(rec, a)
	begun := s.response
	if err := s.send("response.in_progress", responseEvent{Response: &begun}); err != nil {
		reply.Cancel(err)
		return nil
	}
	var said turn.Collector
	end, err := web.Follow(rec, reply, w.keepAlive, func(e turn.Event) error {
		said.Add(e)
		return s.event(e)
	}, s.out.Comment)
	if err != nil {
		return nil // the client is gone
	}
	if end.Failure != nil {
		s.send("response.failed", responseEvent{Response: w.failed(s.response, end.Failure)})
		return end.Failure
	}
	if s.close() != nil {
		return nil
	}
	last := w.end(s.response, a, said.Message(), end)
	s.send("response."+last.Status, responseEvent{Response: &last})
	return nil
}

// event sends one step of the reply, in an item of its kind.
func (s *responseStream) event(e turn.Event) error {
	kind := kinds[e.Kind]
	if kind == "" {
		return nil
	}
	if !s.open || e.Kind == turn.CallStart || s.last().Type != kind {
		if err := s.begin(kind, e); err != nil {
			return err
		}
	}
	if e.Text == "" {
		return nil
	}
	s.whole.WriteString(e.Text)
	return s.of(textEvents[kind]+".delta", responseEvent{Delta: e.Text, Logprobs: s.logprobs()})
}

func (s *responseStream) last() *item { return &s.response.Output[len(s.response.Output)-1] }

// logprobs are there, and empty, in events of a message.
func (s *responseStream) logprobs() *[]any {
	if s.last().Type != "message" {
		return nil
	}
	return &[]any{}
}

// of sends an event of the last item.
func (s *responseStream) of(kind string, e responseEvent) error {
	at := len(s.response.Output) - 1
	e.OutputIndex = &at
	if e.Item == nil {
		e.ItemID = s.last().ID
		if s.last().Type != "function_call" {
			e.ContentIndex = new(int)
		}
	}
	return s.send(kind, e)
}

// begin adds an item, and ends the one before.
func (s *responseStream) begin(kind string, e turn.Event) error {
	if err := s.close(); err != nil {
		return err
	}
	fresh := newItem(kind, e, s.asked.spaces)
	fresh.Status = "in_progress"
	s.response.Output = append(s.response.Output, fresh)
	s.open = true
	s.whole.Reset()
	if err := s.of("response.output_item.added", responseEvent{Item: &fresh}); err != nil {
		return err
	}
	if p := partOf(kind, ""); p != nil {
		return s.of("response.content_part.added", responseEvent{Part: p})
	}
	return nil
}

// close ends the item that is under way, if there is one.
func (s *responseStream) close() error {
	if !s.open {
		return nil
	}
	s.open = false
	last, whole := s.last(), s.whole.String()
	*last = last.complete(whole)
	done := responseEvent{Text: &whole, Logprobs: s.logprobs()}
	p := partOf(last.Type, whole)
	if p == nil {
		done = responseEvent{Arguments: &whole, Name: last.Name}
	}
	if err := s.of(textEvents[last.Type]+".done", done); err != nil {
		return err
	}
	if p != nil {
		if err := s.of("response.content_part.done", responseEvent{Part: p}); err != nil {
			return err
		}
	}
	return s.of("response.output_item.done", responseEvent{Item: last})
}
