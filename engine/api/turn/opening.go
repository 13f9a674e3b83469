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

// force gives the tokens that force a tool call, and the mask that holds the name to the tools' where it is open. The
// opening ends where a word of the tokenizer ends, so that what follows is cut into tokens as in the model's training:
// "=get" is one.
func (s *Service) force(q *Request, thinking bool) forced {
	start := "<tool_call>\n<function"
	if thinking {
		start = "\n</think>\n\n" + start
	}
	switch q.Choice.Calling {
	case CallNamed:
		return forced{opening: s.special(start + nameOf(q.Choice.Name))}
	case CallRequired:
		ids := s.special(start)
		return forced{ids, s.nameMask(q.Tools, len(ids))}
	}
	return forced{}
}

// special encodes markup of the model's format.
func (s *Service) special(markup string) []int32 {
	return s.opt.Tokenizer.Encode(markup, text.EncodeOptions{SpecialTokens: true})
}

// nameOf is how a call goes on after "<function".
func nameOf(name string) string { return "=" + name + ">\n" }

// nameMask allows, after the opening, only tokens that go on towards the name of one of the tools, to the end of its line.
func (s *Service) nameMask(tools []Tool, openingTokens int) func([]int32) sample.Mask {
	return func(reply []int32) sample.Mask {
		var soFar []byte
		for _, id := range reply[openingTokens:] {
			soFar = append(soFar, s.opt.Tokenizer.TokenBytes(id)...)
		}
		written := string(soFar)
		if strings.Contains(written, "\n") {
			return nil
		}
		mask := sample.NewMask(s.opt.VocabTokens)
		for id := range int32(s.opt.VocabTokens) {
			piece := string(s.opt.Tokenizer.TokenBytes(id))
			if piece == "" || s.opt.Tokenizer.IsSpecial(id) {
				continue
			}
			for _, t := range tools {
				if strings.HasPrefix(nameOf(t.Name), written+piece) {
					mask.Allow(id)
				}
			}
		}
		return mask
	}
}
