// Package api is the server's HTTP face: its wires, and what is common to them: who may ask, health, metrics and the
// control of the server.
//
// Main line of a request: guard (who may ask) -> the wire of its path reads it strictly -> turn makes the prompt
// and queues -> the wire renders the reply. wires.go lists the wires; a new one is a package beside openai and a
// line there. It touches neither turn nor web, unless it can ask for what no wire could ask before.
//
//   - turn: one turn of a conversation, in no wire's form
//   - web: what wires do alike with HTTP and JSON
//   - openai, anthropic, ollama: wires
//
// # Replies to clients that leave
//
// A client that leaves cancels its reply. One that closes only its sending side looks the same and is treated alike:
// its reply is cancelled, and what it still reads says so.
//
// # Large bodies
//
// A body of more than 1 MiB is read, understood and tokenised while no other of its kind is; others wait up to a
// minute and then get 503. A prompt far beyond the window is counted only until that is certain: its 400 says "at
// least".
//
// # Who may ask
//
// A web page must not reach the server: Host must be loopback, the address that the connection came in on, or a
// name given at start; an Origin other than the server's own is refused; POST needs application/json; no CORS
// header is ever sent. With a key, every path needs it but GET /health from loopback.
//
// # Replies that take long
//
// A stream begins as soon as the request is queued, and sends something without content whenever nothing was sent for
// the keep-alive interval (an empty delta, a ping, a comment: as the wire has it). A plain reply sends white space
// (JSON allows it in front) from the first interval on; from then its status is 200 and a later failure is an error
// object in the body.
package api
