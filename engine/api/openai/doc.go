// Package openai is OpenAI's wire: chat and text completions, responses and the model list. It reads a body strictly
// into a [turn.Request], so that every refusal names its member, and renders the events of the reply in OpenAI's
// shapes.
//
// # What is refused, what is ignored
//
// A member that changes what the client gets and is not done here is refused with 400 and its name: n above 4, images,
// audio, files, functions, function_call, web_search_options,
// store true, top_logprobs without logprobs, echo, suffix, best_of above 1, a reasoning_effort that OpenAI does not
// have, or whose switch the model's template has not, a member of chat_template_kwargs that the model's template does
// not use (enable_thinking is always taken),
// and every member that is not known at all. A member that is null counts as absent.
//
// Ignored, because the reply would be the same with and without: user, metadata, store false, safety_identifier,
// prompt_cache_key, prompt_cache_retention, prediction, service_tier "auto" and "default", verbosity "medium",
// modalities ["text"], stream_options.include_obfuscation; in messages cache_control, id, refusal, annotations,
// provider_specific_fields, reasoning_details, extra_content and audio null; index of a tool call.
//
// # Histories
//
// A conversation that a client has is one that it can go on with. Content may be missing where an assistant only
// called or said nothing, and be any JSON in a tool's result. Thinking is reasoning_content or reasoning. Arguments
// that are no object are one parameter of the name arguments. System messages that the conversation begins with
// become one; a later one stays in its place, marked. A last message of the assistant is continued, unless
// continue_final_message is false. Whole numbers may be written 12.0; max_tokens -1 is no limit.
//
// # Forced calls, seeds and logprobs
//
// tool_choice "required" or a function's name begins the call at once, without thinking; where the name is open,
// only the tools' names can be written. The opening tokens count as the reply's. A seed gives the same reply again
// for the same request and system_fingerprint. logprobs are the network's own, before penalties, temperature and
// truncation; in a chat they cover the content, not thinking, tool calls or forced tokens.
//
// # Responses
//
// Items that an assistant thought, said and called in a row are one message of its. Thinking is an item reasoning
// with its text; a summary is neither made nor read, nor is encrypted_content. Functions of a namespace are known to
// the model as "namespace.name". A response is kept in memory under a random id of 128 bits unless store is false:
// the latest 64, of 64 MiB together, until a restart or a reload; previous_response_id and item_reference lead to
// them. Refused by name: tools that run at OpenAI, background, truncation "auto", conversation, prompt, include of
// log probabilities. Ignored beside what a chat ignores: client_metadata, max_tool_calls, other values of include,
// reasoning.summary. A stream whose response failed ends with response.failed, also where the prompt is too long:
// Codex then shortens the conversation.
//
// # How a reply ends
//
// finish_reason is "length" where the tokens ran out, else "stop" or, after complete calls, "tool_calls";
// slipway.notice says what that leaves open. Only a complete reply has a finish_reason: one that was cancelled gets
// 499 with code "cancelled", or that error as the last event of a stream that ends without [DONE], or as the body
// of a plain reply whose white space was sent already. Only complete calls are sent, each with its whole arguments.
package openai
