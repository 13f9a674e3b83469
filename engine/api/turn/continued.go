package turn

import "slipway/engine/text"

// continued puts the beginning of a reply behind its prompt, as the text that it is: tags in it are no tokens of the
// form. Thinking that the prompt has opened is closed first, after what the client knows of it. The reply's parser
// starts
// behind it, so that it never becomes a call.
func (s *Service) continued(ids []int32, begun text.Message, thinking bool) []int32 {
	plain := func(t string) []int32 { return s.opt.Text.Tokenizer.Encode(t, text.EncodeOptions{}) }
	if thinking {
		if begun.ReasoningContent != nil {
			ids = append(ids, plain(*begun.ReasoningContent)...)
		}
		ids = append(ids, s.special(s.opt.Text.Family.ThinkingEnds)...)
	}
	return append(ids, plain(begun.Content)...)
}
