package api

import (
	"encoding/json"
	"slices"
	"strings"

	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// chatRequest is a chat completion's body, understood.
type chatRequest struct {
	generation
	conversation  text.Conversation
	tools         []tool
	choice        choice
	parallelCalls bool
}

// efforts are the values of reasoning_effort that OpenAI has; the template judges further.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

func (s *Server) readChat(o *object) (*chatRequest, *Error) {
	if err := s.wrongModel(o); err != nil {
		return nil, err
	}
	q := &chatRequest{generation: s.readGeneration(o)}
	q.conversation.AddGenerationPrompt = true
	q.conversation.Messages = readMessages(o)
	q.tools, q.choice, q.parallelCalls = readTools(o)
	if q.choice.kind != "none" {
		for _, t := range q.tools {
			q.conversation.Tools = append(q.conversation.Tools, t.raw)
		}
	}
	effort, given := o.str("reasoning_effort")
	if given && !slices.Contains(efforts, effort) {
		o.fail("reasoning_effort", "is %.40q; allowed: %s", effort, strings.Join(efforts, ", "))
	}
	q.conversation.ReasoningEffort = effort
	q.conversation.Kwargs = s.readKwargs(o)
	q.readChatLogprobs(o)
	o.only("response_format", "structured output is not supported yet", `{"type":"text"}`)
	o.only("modalities", "this server answers with text", `["text"]`)
	o.only("verbosity", "the model has no such setting", `"medium"`)
	return q, o.done()
}

// readKwargs takes the template's variables. One that the template does not use would be ignored in silence, but for
// enable_thinking, which clients send whatever the model. The template judges the values of all but that one, whose type it
// would not check.
func (s *Server) readKwargs(o *object) json.RawMessage {
	raw := o.take("chat_template_kwargs")
	if raw == nil {
		return nil
	}
	sub, err := readObject("chat_template_kwargs", raw)
	if err != nil {
		o.keep(err)
		return nil
	}
	sub.boolean("enable_thinking")
	for _, name := range sub.order {
		if name != "enable_thinking" && !s.opt.Template.Uses(name) {
			sub.fail(name, "is no variable of this model's chat template, so it would change nothing")
		}
	}
	if sub.err != nil {
		o.keep(sub.err)
	}
	return raw
}

// readChatLogprobs takes logprobs (a boolean) and top_logprobs.
func (q *chatRequest) readChatLogprobs(o *object) {
	wanted, _ := o.boolean("logprobs")
	n, given := o.integer("top_logprobs", 0, 20)
	switch {
	case wanted:
		q.topLogprobs = int(n)
	case given:
		o.fail("top_logprobs", "needs logprobs true")
	}
}

// prompt renders and encodes a conversation. thinking says that the reply begins inside the model's thinking.
func (s *Server) prompt(q *chatRequest) (ids []int32, thinking bool, failure *Error) {
	rendered, err := s.opt.Template.Render(q.conversation)
	if err != nil {
		return nil, false, asError(err)
	}
	thinking = strings.HasSuffix(strings.TrimRight(rendered.Text, "\n"), "<think>")
	ids, failure = s.encode("messages", rendered)
	return ids, thinking, failure
}

// encode gives a prompt's ids. One that does not fit the window is counted only where it nearly does.
func (s *Server) encode(param string, p text.Prompt) ([]int32, *Error) {
	window := s.opt.Engine.WindowTokens()
	ids, atLeast := s.opt.Tokenizer.EncodeAtMost(p, window+max(window/8, 4096))
	switch {
	case atLeast > 0:
		return nil, asError(&serve.PromptTooLongError{PromptTokens: atLeast, AtLeast: true, WindowTokens: window})
	case len(ids) == 0:
		return nil, invalid(param, "%v", serve.ErrEmptyPrompt)
	}
	return ids, nil
}

// opening gives the tokens that force a tool call, and the mask that holds the name to the tools' where it is open. It ends
// where a word of the tokenizer ends, so that what follows is cut into tokens as in the model's training: "=get" is one.
func (s *Server) opening(q *chatRequest, thinking bool) ([]int32, func([]int32) sample.Mask) {
	start := "<tool_call>\n<function"
	if thinking {
		start = "\n</think>\n\n" + start
	}
	encode := func(opening string) []int32 {
		return s.opt.Tokenizer.Encode(opening, text.EncodeOptions{SpecialTokens: true})
	}
	switch q.choice.kind {
	case "named":
		return encode(start + nameOf(q.choice.name)), nil
	case "required":
		ids := encode(start)
		return ids, s.nameMask(q.tools, len(ids))
	}
	return nil, nil
}

// nameOf is how a call goes on after "<function".
func nameOf(name string) string { return "=" + name + ">\n" }

// nameMask allows, after the opening, only tokens that go on towards the name of one of the tools, to the end of its line.
func (s *Server) nameMask(tools []tool, openingTokens int) func([]int32) sample.Mask {
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
				if strings.HasPrefix(nameOf(t.name), written+piece) {
					mask.Allow(id)
				}
			}
		}
		return mask
	}
}
