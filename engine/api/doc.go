// Package api is the server's HTTP face: OpenAI's chat and text completions, the model list, health and metrics.
//
// It knows wire shapes, text and the queue ([serve.Engine]); it knows no tensor. Main line of a request: guard (who may
// ask) -> read (strictly, every refusal names its field) -> render and tokenize -> queue -> follow the reply.
//
// # What is refused, what is ignored
//
// A member that changes what the client gets and is not done here is refused with 400 and its name: response_format other
// than text, n above 1, images, audio, files, functions, function_call, web_search_options, strict tools, store true,
// top_logprobs without logprobs, echo, suffix, best_of above 1, a reasoning_effort that OpenAI has not, a member of
// chat_template_kwargs that the model's template does not use (enable_thinking is always taken), and every member that is not known at all. A member that is
// null counts as absent.
//
// Ignored, because the reply would be the same with and without: user, metadata, store false, safety_identifier,
// prompt_cache_key, prompt_cache_retention, prediction, service_tier "auto" and "default", verbosity "medium", modalities
// ["text"], stream_options.include_obfuscation; in messages annotations of an assistant's turn, cache_control, and index of
// a tool call.
//
// # Forced calls, stop texts and seeds
//
// tool_choice "required" or a function's name begins the call at once, without thinking; where the name is open, only the
// tools' names can be written. The opening tokens count as the reply's.
//
// Stop texts of a chat are looked for in the text that the client sees, thinking and content, each by itself: not in the
// markup of tool calls, their arguments or forced tokens, nor in the newlines around them that are left out. A seed gives the same reply
// again for the same request and system_fingerprint. logprobs are the network's own, before penalties, temperature and
// truncation; in a chat they cover the content, not thinking, tool calls or forced tokens.
//
// # Calls that are cut off
//
// A reply can end inside a call, because it ran out of tokens or because the model gave up. A plain reply leaves such a call
// out, markup and all: the arguments of every call handed out are a JSON object. A stream cannot take back what it has sent;
// it begins a call only with the first of its arguments, so that the client holds "{…" cut off, which no JSON reader takes,
// and never a call that seems to have no arguments. finish_reason is "length" where the tokens ran out, else "stop" (plain:
// "tool_calls" where whole calls came before), and slipway.notice says what happened. Clients treat a call by what its
// finish_reason and arguments say, as they must with OpenAI, which sends cut arguments with "length" too.
//
// # Replies that are cut
//
// A client that leaves cancels its reply. One that closes only its sending side cannot be told from it and is treated alike:
// it gets 499 with code "cancelled", or that error as the last event of a stream that ends without [DONE], or as the body
// of a plain reply whose white space was sent already. Only a whole reply has a finish_reason.
//
// # Large bodies
//
// A body of more than 1 MiB is read, understood and tokenised while no other of its kind is; others wait up to a minute and
// are then told 503. A prompt far beyond the window is counted only until that is certain: its 400 says "at least".
//
// # Who may ask
//
// A web page must not reach the server: Host must be loopback, the address that the connection came in on, or a name given
// at start; an Origin other than the server's own is refused; POST needs application/json; no CORS header is ever sent.
// With a key, every path needs it but GET /health from loopback.
//
// # Replies that take long
//
// A stream sends its role delta as soon as the request is queued, and an empty delta whenever nothing was sent for the
// keep-alive interval. A plain reply sends white space (JSON allows it in front) from the first interval on; from then
// its status is 200 and a later failure is an error object in the body.
package api
