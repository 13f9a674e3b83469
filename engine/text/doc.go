// Package text turns strings into token ids and back, and conversations into prompts and replies.
//
//   - [Tokenizer] reads tokenizer.json (byte-level BPE) and encodes and decodes.
//   - [Template] renders a conversation with the model's own chat template; [Tokenizer.EncodePrompt] encodes what it
//     rendered so that nothing a person wrote can become a control token.
//   - [Model] holds both with the model's [family.Family], whose parser splits a streamed reply into reasoning, content
//     and tool calls.
//
// The package knows strings and ids. It knows no tensor, no device and no wire format; it reads files only in the Load
// functions and holds no clock. A Tokenizer and a Template are immutable and safe for concurrent use; a Stream and a
// parser belong to one reply.
package text
