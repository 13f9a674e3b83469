package api

import (
	"slipway/engine/serve"
	"slipway/engine/text"
)

// reading turns a chat reply's raw text into what its client gets: thinking, content and calls, up to the first stop text.
// Stop texts are looked for in thinking and content alone, each by itself; markup, which the client never sees, holds none.
//
// Two readings of a reply see the same text and end it at the same place: one tells the engine when the reply is over, the
// other makes the message.
type reading struct {
	parser  *text.OutputParser
	stops   serve.StopFinder
	oneCall bool // the reply is over with its first whole call

	section text.EventKind // that the text held in stops belongs to
	over    bool           // a stop text or the one call was found; nothing follows
}

func newReading(q *chatRequest, thinking bool) *reading {
	return &reading{
		parser:  text.NewOutputParser(text.ParserOptions{ThinkingOpen: thinking, Tools: q.conversation.Tools}),
		stops:   serve.StopFinder{Stops: q.stop},
		oneCall: !q.parallelCalls,
	}
}

// push takes more of the reply and gives what became certain; final ends it.
func (r *reading) push(s string, final bool) (events []text.Event) {
	if r.over {
		return nil
	}
	parsed := r.parser.Push(s)
	if final {
		parsed = append(parsed, r.parser.Close()...)
	}
	give := func(piece string) {
		if piece != "" {
			events = append(events, text.Event{Kind: r.section, Text: piece})
		}
	}
	for _, e := range parsed {
		isText := e.Kind == text.ReasoningDelta || e.Kind == text.ContentDelta
		if !isText || e.Kind != r.section {
			give(r.stops.Flush())
		}
		if !isText {
			events = append(events, e)
			if r.over = e.Kind == text.ToolCallEnd && r.oneCall; r.over {
				return events
			}
			continue
		}
		r.section = e.Kind
		piece, hit := r.stops.Push(e.Text)
		give(piece)
		if r.over = hit; hit {
			return events
		}
	}
	if final {
		give(r.stops.Flush())
	}
	return events
}

// unfinished reports, at the end, that the reply ended inside a call.
func (r *reading) unfinished() bool { return !r.over && r.parser.Unfinished() }

// watch gives the engine's way to learn that the reply is over; nil where only the model and the bounds end it.
func watch(q *chatRequest, thinking bool) func(string, bool) bool {
	if len(q.stop) == 0 && (q.parallelCalls || len(q.conversation.Tools) == 0) {
		return nil
	}
	r := newReading(q, thinking)
	return func(s string, final bool) bool {
		r.push(s, final)
		return r.over
	}
}
