package turn

import (
	"sync"

	"slipway/engine/serve"
	"slipway/engine/text/family"
)

// reading turns a reply's raw text into what its client gets: thinking, content and calls, up to the first stop
// text. Stop texts are looked for in content alone: thinking may name one, and markup, which the client never sees,
// holds none.
//
// A reply is read once. Where a stop text or a first call may end it, the queue must know before the next token, so
// its goroutine reads and the events wait for the client's; otherwise the client's goroutine reads and the queue is
// not kept.
type reading struct {
	parser  family.Parser
	stops   serve.StopFinder
	oneCall bool // the reply is over with its first complete call
	tools   bool

	over bool // a stop text or the one call was found; nothing follows

	mu    sync.Mutex
	early [][]family.Event // read by the queue's goroutine, one entry for each of the queue's events
}

func newReading(q *Request, thinking bool, f *family.Family, holds func(name, arguments string) bool) *reading {
	stops := q.Stop
	if q.Format != nil {
		stops = nil // they would cut JSON
	}
	return &reading{
		parser: f.NewParser(family.ParserOptions{ThinkingOpen: thinking, Tools: q.Conversation.Tools,
			Holds: holds, OneCall: q.OneCall, Verbatim: q.Format != nil}),
		stops:   serve.StopFinder{Stops: stops},
		oneCall: q.OneCall,
		tools:   len(q.Conversation.Tools) > 0,
	}
}

// ends reports whether the text may end the reply.
func (r *reading) ends() bool { return len(r.stops.Stops) > 0 || r.oneCall && r.tools }

// ahead reads for the queue, which asks whether the reply is over with this text.
func (r *reading) ahead(s string, reason serve.FinishReason) (over bool) {
	events := r.push(s, reason)
	r.mu.Lock()
	r.early = append(r.early, events)
	r.mu.Unlock()
	return r.over
}

// next gives what an event of the queue makes certain. One that the queue has not read is read now: only the end of
// a reply that was cancelled, or every event of a reply that its text does not end.
func (r *reading) next(e serve.Event) []family.Event {
	r.mu.Lock()
	early := len(r.early) > 0
	var events []family.Event
	if early {
		events = r.early[0]
		r.early = r.early[1:]
	}
	r.mu.Unlock()
	if early {
		return events
	}
	if e.End != nil {
		return r.push(e.Text, e.End.Reason)
	}
	return r.push(e.Text, "")
}

// push takes more of the reply and gives what became certain; a reason ends it.
func (r *reading) push(s string, reason serve.FinishReason) (events []family.Event) {
	if r.over {
		return nil
	}
	parsed := r.parser.Push(s)
	if reason != "" {
		parsed = append(parsed, r.parser.Close(reason != serve.FinishStop)...)
	}
	if len(r.stops.Stops) == 0 && !r.oneCall {
		return parsed
	}
	give := func(piece string) {
		if piece != "" {
			events = append(events, family.Event{Kind: family.ContentDelta, Text: piece})
		}
	}
	for _, e := range parsed {
		if e.Kind != family.ContentDelta {
			give(r.stops.Flush())
			events = append(events, e)
			if r.over = e.Kind == family.ToolCallEnd && r.oneCall; r.over {
				return events
			}
			continue
		}
		piece, hit := r.stops.Push(e.Text)
		give(piece)
		if r.over = hit; hit {
			return events
		}
	}
	if reason != "" {
		give(r.stops.Flush())
	}
	return events
}

// verdict says, at the end, what became of text that looked like a call.
func (r *reading) verdict() family.Verdict {
	if r.over {
		return family.Certain
	}
	return r.parser.Verdict()
}
