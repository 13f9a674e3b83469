package text

import "encoding/json"

// Conversation is what a chat template renders. Order of keys in Tools and in tool-call arguments is kept to the
// prompt.
type Conversation struct {
	Messages []Message

	// Tools holds one JSON object a tool, as the client sent it:
	// {"type":"function","function":{"name":…,"description":…,"parameters":…}}. Empty means that the template sees no
	// tools.
	Tools []json.RawMessage

	// AddGenerationPrompt opens the assistant's turn at the end of the prompt.
	AddGenerationPrompt bool

	// EnableThinking is the template's enable_thinking; nil leaves it undefined (the template's own default).
	EnableThinking *bool

	// ReasoningEffort in OpenAI's words; empty leaves it undefined. "none" turns thinking off instead; some values are
	// renamed for the family's templates, every other one is passed on for the template to judge.
	ReasoningEffort string

	// Kwargs is the client's chat_template_kwargs: a JSON object, or empty. Its members are variables of the template.
	// They win over EnableThinking and ReasoningEffort; a member that would shadow messages, tools,
	// add_generation_prompt or a function of the template language is an error. One that the template does not use
	// ([Template.Uses]) is ignored.
	Kwargs json.RawMessage
}

// Message is one turn. Text parts of a client's content list are to be joined by the caller.
type Message struct {
	Role    string // "system", "user", "assistant" or "tool"; others reach the template, which refuses them
	Content string // empty for an assistant turn that only calls tools

	// ReasoningContent is the thinking of an assistant turn; nil where the client sent none (some templates then look
	// for <think> in Content).
	ReasoningContent *string

	Partial bool // of an assistant turn that its client wants continued; no template sees it

	ToolCalls  []ToolCall // of an assistant turn
	ToolCallID string     // of a tool turn; optional
	Name       string     // optional
}

// ToolCall is a call in an assistant's turn. Arguments is a JSON object, or a JSON string that holds one (OpenAI's
// form); empty, null and "" mean an object without members.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage
}
