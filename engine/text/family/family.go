// Package family is what differs in text between families of models, as one value each. The families themselves are in
// package families.
package family

import "encoding/json"

// Family is the text side of a model family.
type Family struct {
	Name string

	// SplitPattern is the pre-tokeniser's pattern in tokenizer.json, and WordEnd what it does: the end of the word
	// that begins at s[i:], which is not empty. The end of s is the end of the text between two added tokens.
	// Between an ASCII letter and a blank or newline a word always ends: long texts are split there.
	SplitPattern string
	WordEnd      func(s string, i int) int

	// Turn markers, as their added tokens are written. AssistantOpens is the text that starts an assistant turn.
	AssistantOpens, UserOpens, TurnEnds string

	// ParserTags are the special tokens whose text the reply parser reads: they are no control tokens.
	ParserTags []string
	// TemplateTags are looked for by the family's templates in the content of an assistant turn without
	// reasoning_content.
	TemplateTags []string
	// ResultOpens and ResultCloses are around the result of a tool. Templates ask whether a person's text is between
	// them.
	ResultOpens, ResultCloses string
	// Efforts renames values of reasoning_effort for the family's templates; one that is missing is passed on as it
	// is.
	Efforts map[string]string

	// OpensThinking reports whether a reply to this rendered prompt begins inside the model's thinking.
	OpensThinking func(prompt string) bool
	// ThinkingEnds closes the thinking of a reply that begins inside it, as the family's templates write it.
	ThinkingEnds string
	// CallOpening is the text that forces a tool call, up to the function's name: it ends where a word of the
	// tokenizer ends, so that what follows is tokenised as in the model's training.
	CallOpening func(thinking bool) string
	// CallName is how a call continues after CallOpening; it ends with a newline and holds no other.
	CallName func(name string) string

	// NewParser begins the reading of a reply.
	NewParser func(ParserOptions) Parser
}

// Parser splits a reply into thinking, content and tool calls as it streams. How the text is split into pushes
// changes how events are split, and nothing else.
type Parser interface {
	// Push takes more of the reply and gives what became certain.
	Push(s string) []Event
	// Close ends the reply and gives the rest; cut: the model did not end it itself. The parser cannot be used again.
	Close(cut bool) []Event
	// Verdict says, after Close, what became of text that looked like a call.
	Verdict() Verdict
}

// Verdict says how text that looked like a call was read.
type Verdict int

const (
	Certain         Verdict = iota // it was a call, or there was none
	CutCall                        // the reply was cut in it: it is left out
	NoReading                      // it is no call of the given tools: it is text
	SeveralReadings                // it can be read in more than one way: it is text
)

// EventKind says what a piece of a reply is.
type EventKind int

const (
	ReasoningDelta    EventKind = iota // Text: more of the model's thinking
	ContentDelta                       // Text: more of the answer
	ToolCallStart                      // Index, Name: a call begins
	ToolCallArguments                  // Index, Text: more of the arguments' JSON
	// what follows may be a call, so that nothing comes until it is certain
	CallHeld
	// Index: the call is complete; the texts of its arguments joined are a JSON object
	ToolCallEnd
)

// Event is a piece of a reply that has become certain.
type Event struct {
	Kind  EventKind
	Text  string // of deltas, never empty there
	Index int    // of the call, from 0
	Name  string // of the function, at ToolCallStart
}

// ParserOptions says how a reply begins and what its calls may be.
type ParserOptions struct {
	// ThinkingOpen: the prompt ended inside <think>, so that the reply begins with thinking.
	ThinkingOpen bool

	// Tools as the client sent them; their schemas give the types of arguments. Without tools the tags of calls are
	// content.
	Tools []json.RawMessage

	// Holds reports whether the arguments of a call, a JSON object, are ones that its tool takes; nil: every tool takes
	// any. A call that does not hold is none.
	Holds func(name, arguments string) bool

	// OneCall: the reply is over with its first complete call.
	OneCall bool

	// Verbatim: the content is held to a form, so that tags in it are text and stay.
	Verbatim bool
}
