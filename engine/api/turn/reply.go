package turn

import (
	"strings"

	"slipway/engine/serve"
	"slipway/engine/text/family"
)

// Reply is the reading side of a turn. It belongs to one reader.
type Reply struct {
	PromptTokens int

	service *Service
	queued  *serve.Reply
	reading *reading               // nil: a raw reply, which is content from end to end
	callID  func(index int) string // ids of calls
	reports bool                   // tokens are reported
	end     End                    // known so far

	events   []Event // of the last Take
	waiting  []Token // whose text is not out yet
	thinking bool    // no content and no call yet, in a reply that began with thinking
}

func (s *Service) newReply(q *Request, p prompt) *Reply {
	r := &Reply{PromptTokens: len(p.ids), service: s, reports: q.TopLogprobs >= 0, thinking: p.thinking}
	r.end = End{Approximations: s.opt.Approximations, normalized: p.normalized, thinkingOff: q.ThinkingOff}
	if q.Raw == nil {
		r.reading = newReading(q, p.thinking, s.opt.Text.Family, p.holds)
		r.callID = s.callIDs(p.ids, p.marks.Reply)
	}
	return r
}

// watch is how the queue learns that the reply is over; nil where only the model and the bounds end it.
func (r *Reply) watch() func(string, serve.FinishReason) bool {
	if r.reading == nil || !r.reading.ends() {
		return nil
	}
	return r.reading.ahead
}

// Ready yields once when events may wait that were not there at the last Take.
func (r *Reply) Ready() <-chan struct{} { return r.queued.Ready() }

// Cancel ends the reply. Its last event still comes.
func (r *Reply) Cancel(cause error) { r.queued.Cancel(cause) }

// Take gives the events since the last call, in order, possibly none; they are valid until the next call. The last
// one of a reply is Ended.
func (r *Reply) Take() []Event {
	r.events = r.events[:0]
	for _, e := range r.queued.Take() {
		if e.Token != nil {
			r.note(*e.Token)
		}
		r.read(e)
		if e.Token != nil && r.thinking {
			r.end.ReasoningTokens++
		}
		if e.End != nil {
			r.close(e.End)
		}
	}
	return r.events
}

// read adds the steps that an event makes certain.
func (r *Reply) read(e serve.Event) {
	if r.reading == nil {
		if e.Text != "" {
			r.content(e.Text)
		}
		return
	}
	if e.End != nil && e.End.Reason == serve.FinishError {
		return
	}
	for _, parsed := range r.reading.next(e) {
		r.step(parsed)
	}
}

// step translates one event of the parser.
func (r *Reply) step(e family.Event) {
	switch e.Kind {
	case family.ReasoningDelta:
		r.end.thought = true
		r.waiting = nil
		r.events = append(r.events, Event{Kind: Reasoning, Text: e.Text})
	case family.ContentDelta:
		r.end.answered = r.end.answered || strings.TrimSpace(e.Text) != ""
		r.thinking = false
		r.content(e.Text)
	case family.CallHeld:
		r.thinking = false
	case family.ToolCallStart:
		r.end.answered = true
		r.thinking, r.waiting = false, nil
		r.events = append(r.events, Event{Kind: CallStart, Index: e.Index, ID: r.callID(e.Index), Name: e.Name})
	case family.ToolCallArguments:
		r.events = append(r.events, Event{Kind: CallArguments, Index: e.Index, Text: e.Text})
	case family.ToolCallEnd:
		r.end.calls++
		r.events = append(r.events, Event{Kind: CallEnd, Index: e.Index})
	}
}

func (r *Reply) content(piece string) {
	r.events = append(r.events, Event{Kind: Content, Text: piece, Tokens: r.waiting})
	r.waiting = nil
}

func (r *Reply) close(end *serve.End) {
	r.end.Failure, r.end.Usage, r.end.Times = failureOf(end), end.Usage, end.Times
	r.end.reason, r.end.limitTokens, r.end.windowed = end.Reason, end.LimitTokens, end.Windowed
	if r.reading != nil {
		r.end.verdict, r.end.StopText = r.reading.verdict(), r.reading.stops.Found
	}
	r.events = append(r.events, Event{Kind: Ended, End: &r.end})
}
