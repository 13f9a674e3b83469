// Package serve turns requests into replies: queue -> prefill in chunks -> decode step by step -> end.
//
// One goroutine ([Engine.Run]) owns the network. Every turn it takes one decode step of all replies under way and then one
// prefill chunk of the request that waited longest for one, so that a short request starts within two chunks of a long
// prefill and a long prefill never stops a reply that streams. [Engine.Submit] and the reader of a [Reply] never touch
// the network; a reader that is slow or gone holds nothing up.
//
// With a [keep.Keeper] a request begins where a restore point allows, prefill stops at the places to save at, and every end,
// a cancelled one too, is committed before the sequence is closed.
//
// What ends early: a request whose context ends is dropped before the next pass that would work for it, which is one token
// in decode and one chunk in prefill. A pass that panics ends the requests in it, with an error that they are told, and
// closes their sequences; the engine goes on, as all state between passes belongs to sequences. Three such passes without
// a good one between them end [Engine.Run] with an error: then something is broken for all.
package serve
