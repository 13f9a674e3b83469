package turn

import (
	"strings"

	"slipway/engine/sample"
	"slipway/engine/text"
)

// forced is what the reply must begin with, and the tokens that may follow it.
type forced struct {
	opening []int32
	mask    func(reply []int32) sample.Mask // nil: every token may follow
}

// force gives the tokens that force a tool call, and the mask that holds the name to the tools' where it is open.
func (s *Service) force(q *Request, thinking bool) forced {
	f := s.opt.Text.Family
	switch q.Choice.Calling {
	case CallNamed:
		return forced{opening: s.special(f.CallOpening(thinking) + f.CallName(q.Choice.Name))}
	case CallRequired:
		ids := s.special(f.CallOpening(thinking))
		return forced{ids, s.nameMask(q.Tools, len(ids))}
	}
	return forced{}
}

// special encodes markup of the model's format.
func (s *Service) special(markup string) []int32 {
	return s.opt.Text.Tokenizer.Encode(markup, text.EncodeOptions{SpecialTokens: true})
}

// nameMask allows, after the opening, only tokens that go on towards the name of one of the tools, to the end of
// its line.
func (s *Service) nameMask(tools []Tool, openingTokens int) func([]int32) sample.Mask {
	var names []string
	for _, t := range tools {
		names = append(names, s.opt.Text.Family.CallName(t.Name))
	}
	tokenizer := s.opt.Text.Tokenizer
	return func(reply []int32) sample.Mask {
		var soFar []byte
		for _, id := range reply[openingTokens:] {
			soFar = append(soFar, tokenizer.TokenBytes(id)...)
		}
		written := string(soFar)
		if strings.Contains(written, "\n") {
			return nil
		}
		mask := sample.NewMask(s.VocabTokens())
		for id := range int32(s.VocabTokens()) {
			piece := string(tokenizer.TokenBytes(id))
			if piece == "" || tokenizer.IsSpecial(id) {
				continue
			}
			for _, name := range names {
				if strings.HasPrefix(name, written+piece) {
					mask.Allow(id)
				}
			}
		}
		return mask
	}
}
