package openai

import (
	"unicode/utf8"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/wire"
)

// textLogprobs is the older form of logprobs.
type textLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in characters of the reply
}

type textChoice struct {
	Index        int           `json:"index"`
	Text         string        `json:"text"`
	Logprobs     *textLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

type textReply struct {
	head
	Choices []textChoice `json:"choices"`
	Usage   **wire.Usage `json:"usage,omitempty"`
	Slipway *wire.Note   `json:"slipway,omitempty"`
}

// add appends tokens; offset is the number of characters before them, and after them when it returns.
func (l *textLogprobs) add(tokens []turn.Token, offset *int) {
	for _, t := range tokens {
		l.Tokens = append(l.Tokens, t.Text)
		l.TokenLogprobs = append(l.TokenLogprobs, t.Logprob)
		l.TextOffset = append(l.TextOffset, *offset)
		*offset += utf8.RuneCountInString(t.Text)
		top := map[string]float64{t.Text: t.Logprob} // as OpenAI does: the token chosen is always among them
		for _, other := range t.Top {
			if _, there := top[other.Text]; !there { // two halves of characters have one name; the likelier stays
				top[other.Text] = other.Logprob
			}
		}
		l.TopLogprobs = append(l.TopLogprobs, top)
	}
}

func (w *Wire) plainText(rec *web.Record, replies []*turn.Reply, q *turn.Request) *turn.Error {
	head := w.head("cmpl-", "text_completion")
	p := web.Plain{Record: rec}
	said := make([]turn.Collector, len(replies))
	ends, failure, err := w.follow(rec, replies, func(i int, e turn.Event) error {
		said[i].Add(e)
		return nil
	}, p.Idle)
	if err != nil {
		return nil // the client is gone
	}
	if failure != nil {
		return p.Finish(nil, failure)
	}
	var choices []textChoice
	for i, end := range ends {
		m, finish := said[i].Message(), finishReasons[end.Finish()]
		whole := textChoice{Index: i, Text: m.Content, FinishReason: &finish}
		if q.TopLogprobs >= 0 {
			whole.Logprobs = &textLogprobs{[]string{}, []float64{}, []map[string]float64{}, []int{}}
			whole.Logprobs.add(m.Tokens, new(int))
		}
		choices = append(choices, whole)
	}
	notice := noticeOf(ends)
	u := usageOf(ends, notice)
	return p.Finish(textReply{head, choices, &u, web.NoteOf(notice)}, nil)
}

func (w *Wire) streamText(rec *web.Record, replies []*turn.Reply, q *turn.Request, how streaming) *turn.Error {
	out := web.OpenStream(rec)
	head := w.head("cmpl-", "text_completion")
	send := func(c textChoice, n *wire.Note) error {
		chunk := textReply{head: head, Choices: []textChoice{c}, Slipway: n}
		if how.includeUsage {
			chunk.Usage = new(*wire.Usage)
		}
		return out.Send(chunk)
	}
	idle := func() error { return send(textChoice{}, nil) }
	if err := idle(); err != nil { // the head and something is sent at once
		cancelAll(replies, err)
		return nil
	}
	offsets := make([]int, len(replies))
	ends, failure, err := w.follow(rec, replies, func(i int, e turn.Event) error {
		if e.Kind != turn.Content {
			return nil
		}
		piece := textChoice{Index: i, Text: e.Text}
		if len(e.Tokens) > 0 {
			piece.Logprobs = &textLogprobs{}
			piece.Logprobs.add(e.Tokens, &offsets[i])
		}
		return send(piece, nil)
	}, idle)
	if err != nil {
		return nil // the client is gone
	}
	if failure != nil {
		out.Send(documentOf(failure))
		return failure
	}
	for i, end := range ends {
		finish := finishReasons[end.Finish()]
		if send(textChoice{Index: i, FinishReason: &finish}, web.NoteOf(end.Notice())) != nil {
			return nil
		}
	}
	if how.includeUsage {
		u := usageOf(ends, noticeOf(ends))
		if out.Send(textReply{head: head, Choices: []textChoice{}, Usage: &u}) != nil {
			return nil
		}
	}
	out.Raw(done)
	return nil
}
