// Package anthropic is Anthropic's wire: messages, the count of their tokens, and the model list for clients that
// send the header anthropic-version. It reads a body strictly into a [turn.Request], so that every refusal names its
// member, and renders the events of the reply as content blocks.
//
// # What is read as what
//
// system and messages of role system are system messages; blocks of text are joined with an empty line between them,
// in an assistant's message with nothing, as they were streamed. A tool_result is a tool's message; one with is_error
// begins with "Error:". A last message of the assistant is continued. A block of system that begins with
// "x-anthropic-billing-header:" is left out: Claude Code changes it with every request, and nothing behind it would
// be found in the cache.
//
// thinking "enabled" and "adaptive" let the model think; "disabled" and none turn it off, where the model's template
// can. budget_tokens bounds nothing by itself: thinking counts towards max_tokens. output_config.effort is handed to
// templates that know efforts. Thinking blocks are accepted back whoever signed them.
//
// # What is refused, what is ignored
//
// A member that changes what the client gets and is not done here is refused with 400 and its name: images,
// documents, tools that run at Anthropic or are known by a type alone, containers, MCP servers,
// edits of the context other than keeping all thinking, and every member that is not known at all.
// Ignored, because the reply would be the same with and without: metadata, service_tier, inference_geo, cache_control
// (the cache needs no marks), citations of text, eager_input_streaming, the caller of a call, and the header
// anthropic-beta.
//
// # How a reply ends
//
// stop_reason is max_tokens, stop_sequence (with the text), tool_use or end_turn. Only a whole stream has
// message_delta and message_stop; one that failed ends with an event error. A signature names the thinking that it
// was streamed with. usage.input_tokens counts computed tokens; cache_read_input_tokens those that were found.
// message_start is sent before the cache is asked and counts all as input; message_delta has both.
package anthropic
