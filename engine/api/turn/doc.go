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
//   - What a reply may say only once it is certain (a call) is held by the family's parser.
//   - What a client may call is a [Tool] and what content must be a [Format], in no wire's form; each says where in the
//     client's request it is. tool.go writes tools for templates, and refuses what is not held to a schema yet.
//   - Which tokens may follow (a forced call's name, a schema) is the mask that [Service.Start] gives the queue:
//     opening.go.
//   - Continuing a client's last assistant message: continued.go puts it behind the prompt, and the parser starts
//     behind it.
//   - Several replies to one request are several calls of the queue for one tokenised prompt: [Service.StartSeveral].
//
// # Stop texts
//
// Stop texts of a conversation are looked for in its content: not in thinking, in the markup of tool calls, their
// arguments or forced tokens, nor in the newlines around them that are left out.
//
// # Calls are whole or none
//
// What may be a call is held until its reading is certain, which is the end of the reply; streams and replies in one
// piece therefore give the same calls, each with its whole arguments. What has no reading, or several, is text; where
// the
// reply was cut, it is left out. [End.Notice] says so.
package turn
