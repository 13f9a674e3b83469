package turn

import (
	"context"
	"fmt"

	"slipway/engine/memory/keep"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// Start makes the prompt of q and queues it. id names the request to those who watch. The conversation of q is used
// up: release is called as soon as its memory may be given back, before the request waits.
func (s *Service) Start(ctx context.Context, id string, q *Request, release func()) (*Reply, *Error) {
	replies, failure := s.StartSeveral(ctx, id, q, 1, release)
	if failure != nil {
		return nil, failure
	}
	return replies[0], nil
}

// StartSeveral is [Service.Start] for n replies to one prompt, each a request of its own to the queue and to those who
// watch. Each has a seed of its own, the first that of q. Where the queue has no room for all, none is started.
func (s *Service) StartSeveral(ctx context.Context, id string, q *Request, n int, release func()) ([]*Reply, *Error) {
	entry, first := s.opt.Engine.Ledger().Open(ctx, id)
	defer entry.Drop() // changes nothing once it is queued
	start := s.opt.Now()
	p, failure := s.prepare(q)
	if failure != nil {
		return nil, failure
	}
	q.Conversation.Messages = nil // may be large, and the replies long
	release()
	spent := s.opt.Now().Sub(start)
	var replies []*Reply
	for i := range n {
		r := s.newReply(q, p)
		request := serve.Request{
			ID: id, Entry: entry, Prompt: p.ids, Marks: p.marks, Opening: p.opening, MaxTokens: q.MaxTokens,
			Sampling: q.Sampling, Seed: q.Seed + uint64(i), TopLogprobs: q.TopLogprobs,
			DraftTokens: q.DraftTokens, Stop: p.stop, Watch: r.watch(),
			Text: s.opt.Text.Tokenizer.NewStream(), Tokenize: spent,
		}
		if p.mask != nil {
			request.Mask = p.mask()
		}
		of := first
		if i > 0 {
			request.ID, request.Entry, of = fmt.Sprintf("%s-%d", id, i+1), nil, ctx
		}
		queued, err := s.opt.Engine.Submit(of, request)
		if err != nil {
			for _, r := range replies {
				r.Cancel(err)
			}
			return nil, AsError(err)
		}
		r.queued = queued
		replies = append(replies, r)
	}
	return replies, nil
}

// Tokens gives the ids of the prompt of q. The conversation of q is used up.
func (s *Service) Tokens(q *Request) ([]int32, *Error) {
	p, failure := s.prepare(q)
	return p.ids, failure
}

// prompt is a request's prompt with the way to go on from it.
type prompt struct {
	ids        []int32
	marks      keep.Marks
	thinking   bool // the reply begins inside the model's thinking
	normalized int  // places that rules changed
	forced
	holds func(name, arguments string) bool // of the calls of strict tools; nil: there are none
	stop  []string                          // that the queue looks for itself: in a raw reply, which is not parsed
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
	if p.holds, failure = strictTools(q.Tools); failure != nil {
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
	if p.forced, failure = s.force(q, p.thinking); failure != nil {
		return p, failure
	}
	if begun.Content != "" || begun.ReasoningContent != nil && *begun.ReasoningContent != "" {
		p.ids = s.continued(p.ids, begun, p.thinking)
		p.thinking = false
		if window := s.opt.Engine.WindowTokens(); len(p.ids) >= window {
			return p, AsError(&serve.PromptTooLongError{PromptTokens: len(p.ids), WindowTokens: window})
		}
	}
	return p, nil
}
