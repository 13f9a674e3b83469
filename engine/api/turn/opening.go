package turn

import (
	"slipway/engine/sample"
	"slipway/engine/text"
)

// forced is what the reply must begin with, and the tokens that may follow it.
type forced struct {
	opening []int32
	mask    func() func(reply []int32) sample.Mask // makes that of one reply; nil: every token may follow
}

// force gives the tokens that force a tool call, and the mask that holds the name to the tools' where it is open; or
// the mask that holds the reply to its form. A forced call has no form of content.
func (s *Service) force(q *Request, thinking bool) (forced, *Error) {
	f := s.opt.Text.Family
	switch {
	case q.Choice.Calling == CallNamed:
		return forced{opening: s.special(f.CallOpening(thinking) + f.CallName(q.Choice.Name))}, nil
	case q.Choice.Calling == CallRequired:
		ids := s.special(f.CallOpening(thinking))
		mask := s.nameMask(q.Tools, len(ids))
		return forced{ids, func() func([]int32) sample.Mask { return mask }}, nil
	case q.Format != nil:
		mask, failure := s.formats.mask(q, thinking)
		return forced{mask: mask}, failure
	}
	return forced{}, nil
}

// special encodes markup of the model's format.
func (s *Service) special(markup string) []int32 {
	return s.opt.Text.Tokenizer.Encode(markup, text.EncodeOptions{SpecialTokens: true})
}
