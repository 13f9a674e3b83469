// Package qwen35 is the family of Qwen3.5, 3.6 and 3.8. Network: gated delta net with full attention in every fourth
// layer. Text: ChatML turns, <think>, and calls written as XML-like tags.
package qwen35

import (
	"strings"

	"slipway/engine/text/family"
)

// Text is the text side of the family.
var Text = &family.Family{
	Name: "Qwen3.5",

	SplitPattern: splitPattern,
	WordEnd:      wordEnd,

	AssistantOpens: "<|im_start|>assistant\n",
	UserOpens:      "<|im_start|>user",
	TurnEnds:       "<|im_end|>",

	ParserTags:   []string{thinkTag, thinkEnd, callTag, callEnd, "<tool_response>", "</tool_response>"},
	TemplateTags: []string{thinkTag, thinkEnd},
	ResultOpens:  "<tool_response>",
	ResultCloses: "</tool_response>",
	Efforts:      map[string]string{"high": "xhigh", "minimal": "low"},

	OpensThinking: func(prompt string) bool { return strings.HasSuffix(strings.TrimRight(prompt, "\n"), thinkTag) },
	ThinkingEnds:  "\n" + thinkEnd + "\n\n",
	CallOpening: func(thinking bool) string { // "=get" is one word
		opening := callTag + "\n<function"
		if thinking {
			opening = "\n" + thinkEnd + "\n\n" + opening
		}
		return opening
	},
	CallName: func(name string) string { return "=" + name + ">\n" },

	NewParser: func(opt family.ParserOptions) family.Parser { return NewOutputParser(opt) },
}
