package turn

import (
	"context"

	"slipway/engine/memory/keep"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// Start makes the prompt of q and queues it. id names the request to those who watch. The conversation of q is used
// up: release is called as soon as its memory may be given back, before the request waits.
func (s *Service) Start(ctx context.Context, id string, q *Request, release func()) (*Reply, *Error) {
	entry, ctx := s.opt.Engine.Ledger().Open(ctx, id)
	defer entry.Drop() // changes nothing once it is queued
	start := s.opt.Now()
	p, failure := s.prepare(q)
	if failure != nil {
		return nil, failure
	}
	q.Conversation.Messages = nil // may be large, and the reply long
	release()
	r := s.newReply(q, p)
	queued, err := s.opt.Engine.Submit(ctx, serve.Request{
		ID: id, Entry: entry, Prompt: p.ids, Marks: p.marks, Opening: p.opening, MaxTokens: q.MaxTokens,
		Sampling: q.Sampling, Seed: q.Seed, Mask: p.mask, TopLogprobs: q.TopLogprobs,
		DraftTokens: q.DraftTokens, Stop: p.stop, Watch: r.watch(),
		Text: s.opt.Text.Tokenizer.NewStream(), Tokenize: s.opt.Now().Sub(start),
	})
	if err != nil {
		return nil, AsError(err)
	}
	r.queued = queued
	return r, nil
}

// Count gives the tokens of the prompt of q. The conversation of q is used up.
func (s *Service) Count(q *Request) (promptTokens int, failure *Error) {
	p, failure := s.prepare(q)
	return len(p.ids), failure
}

// prompt is a request's prompt with the way to go on from it.
type prompt struct {
	ids        []int32
	marks      keep.Marks
	thinking   bool // the reply begins inside the model's thinking
	normalized int  // places that rules changed
	forced
	stop []string // that the queue looks for itself: in a raw reply, which is not parsed
}

func (s *Service) prepare(q *Request) (p prompt, failure *Error) {
	if q.Raw != nil {
		p.stop = q.Stop
		p.ids, failure = s.rawPrompt(q.Raw)
		return p, failure
	}
	if failure = q.check(); failure != nil {
		return p, failure
	}
	c := &q.Conversation
	c.AddGenerationPrompt = true
	if q.Choice.Calling != CallNone {
		c.Tools = templateTools(q.Tools)
	}
	p.normalized = s.normalize(c.Messages)
	c.Messages = placeSystem(c.Messages)
	s.restoreThinking(c)
	var begun text.Message
	if q.Continue {
		last := len(c.Messages) - 1
		c.Messages, begun = c.Messages[:last], c.Messages[last]
	}
	if p.ids, p.thinking, failure = s.render(q.Param, *c); failure != nil {
		return p, failure
	}
	p.ids, p.marks = s.recall(p.ids, c.Tools)
	p.forced = s.force(q, p.thinking)
	if begun.Content != "" || begun.ReasoningContent != nil && *begun.ReasoningContent != "" {
		p.ids = s.continued(p.ids, begun, p.thinking)
		p.thinking = false
		if window := s.opt.Engine.WindowTokens(); len(p.ids) >= window {
			return p, AsError(&serve.PromptTooLongError{PromptTokens: len(p.ids), WindowTokens: window})
		}
	}
	return p, nil
}
