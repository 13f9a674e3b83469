package turn

import (
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// MostMessages bounds a conversation: templates take some 40 µs a message (200,000 took 8 s on two cores), and the
// shortest take 5 tokens of the window.
const MostMessages = 20_000

// Request is what a client asks, in no wire's form.
type Request struct {
	// Conversation is what the template renders; its Tools and AddGenerationPrompt are set by [Service.Start].
	Conversation text.Conversation
	Param        string // path of its messages in the client's request, for errors

	// Raw is the prompt of a text completion, used in the place of a conversation; nil for a conversation.
	Raw *RawPrompt

	// Continue: the last message of the conversation, an assistant's, is the beginning of the reply.
	Continue bool

	Tools   []Tool
	Choice  Choice
	OneCall bool // the reply ends with its first complete call

	Format *Format // of the content; nil: text

	Sampling    sample.Params
	Seed        uint64
	MaxTokens   int      // of the reply; 0: to the window's end
	Stop        []string // texts that end the reply and are not part of it; none empty
	TopLogprobs int      // likeliest tokens to report with each; negative: report none
	// that a draft proposes at a time, at most MostDraftTokens; 0: as the server has it; NoDraft: none
	DraftTokens int

	// ThinkingOff is how this wire's clients turn thinking off, for the notice of a reply that only thought.
	ThinkingOff string
}

// NoDraft is Request.DraftTokens of a reply whose tokens are computed one by one.
const NoDraft = serve.NoDraft

// RawPrompt is a prompt without a template: a text, in which added tokens are recognised, or token ids.
type RawPrompt struct {
	Param string // path of the parameter, for errors
	Text  string
	IDs   []int32 // in [0, VocabTokens); used where not nil
}

// Calling says whether the model may, must or must not call a tool.
type Calling int

const (
	CallAuto     Calling = iota // as the model likes
	CallNone                    // the template sees no tools
	CallRequired                // one of the tools
	CallNamed                   // Choice.Name
)

// Choice is which tool is to be called.
type Choice struct {
	Param   string // path in the client's request, for errors
	Calling Calling
	Name    string // where named
}
