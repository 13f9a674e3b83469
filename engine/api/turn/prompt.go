package turn

import (
	"errors"

	"slipway/engine/serve"
	"slipway/engine/text"
)

// render gives a conversation's prompt. param is the path of its messages; thinking says that the reply begins inside
// the model's thinking.
func (s *Service) render(param string, c text.Conversation) (ids []int32, thinking bool, failure *Error) {
	rendered, err := s.opt.Text.Template.Render(c)
	var template *text.TemplateError
	switch {
	case errors.As(err, &template) && template.Raised:
		return nil, false, Invalid(param, "%s", template.Error())
	case err != nil:
		return nil, false, AsError(err)
	}
	thinking = s.opt.Text.Family.OpensThinking(rendered.Text)
	ids, failure = s.encode(param, rendered)
	return ids, thinking, failure
}

func (s *Service) rawPrompt(raw *RawPrompt) ([]int32, *Error) {
	if raw.IDs == nil {
		return s.encode(raw.Param, text.Prompt{Text: raw.Text})
	}
	if len(raw.IDs) == 0 {
		return nil, Invalid(raw.Param, "%v", serve.ErrEmptyPrompt)
	}
	return raw.IDs, nil
}

// encode gives a prompt's ids. One that does not fit the window is counted only where it nearly does.
func (s *Service) encode(param string, p text.Prompt) ([]int32, *Error) {
	window := s.opt.Engine.WindowTokens()
	ids, atLeast := s.opt.Text.Tokenizer.EncodeAtMost(p, window+max(window/8, 4096))
	switch {
	case atLeast > 0:
		return nil, AsError(&serve.PromptTooLongError{PromptTokens: atLeast, AtLeast: true, WindowTokens: window})
	case len(ids) == 0:
		return nil, Invalid(param, "%v", serve.ErrEmptyPrompt)
	}
	return ids, nil
}
