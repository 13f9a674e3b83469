// Package turn is one turn of a conversation, in no wire's form: what a client asks, and what the model replies.
//
// Main line: a wire reads its JSON into a [Request]; [Service.Start] normalises the system messages, renders the
// chat template, tokenises, puts back the ids of earlier replies and queues; the wire then renders the [Event]s of
// the [Reply] in its own shapes until one of them is the end.
//
// The package knows the queue ([serve.Engine]), text and the cache. It knows no JSON of a wire and no HTTP: its
// refusals are an [Error] (kind, parameter, sentence), which each wire renders.
//
// # Where what belongs
//
//   - What a reply may say only once it is certain (the opening of a call) is held in [Reply.step].
//   - Which tokens may follow (a forced call's name, a schema) is the mask that [Service.Start] gives the queue:
//     opening.go.
//   - Continuing a client's last assistant message is the request's own prefix: prompt.go renders it, reading.go starts
//     after it.
//   - Several replies to one request are several calls of the queue for one tokenised prompt: [Service.Start].
//
// # Stop texts
//
// Stop texts of a conversation are looked for in the text that the client sees, thinking and content, each by
// itself: not in the markup of tool calls, their arguments or forced tokens, nor in the newlines around them that
// are left out.
//
// # Calls that are not finished
//
// A reply can end inside a call, because it ran out of tokens or because the model gave up. A reply in one piece
// leaves such a call out, markup and all. A stream cannot take back what it has sent; it opens a call only with the
// first of its arguments, so that the client holds the unfinished JSON "{…", which no JSON reader accepts, and
// never a call that seems to have no arguments. [End.Finish] is then never [FinishCalls], and [End.Notice] says
// what happened.
package turn
