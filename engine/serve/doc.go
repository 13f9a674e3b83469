// Package serve turns requests into replies: queue -> prefill in chunks -> decode step by step -> end.
//
// One goroutine ([Engine.Run]) owns the network. In turn it runs one decode step for all running replies and one
// prefill chunk for the request that waited longest, so that a short request starts within two chunks of a long prefill
// and a long prefill never stops a reply. [Engine.Submit] and the reader of a [Reply] never touch the network; a slow
// or missing reader blocks nothing. How a step gets its tokens is the decoder's affair: one each, or several that a
// draft proposed.
//
// With a [keep.Keeper] a request starts from a restore point, prefill stops at the places to save at, and what was
// processed is saved before the sequence is closed, also after a cancel.
//
// Early ends: a request whose context ends is dropped before its next pass, which is one token in decode and one chunk
// in prefill. A pass that panics ends its requests with an error and closes their sequences; the engine continues, as
// all state between passes belongs to sequences. Three such passes in a row end [Engine.Run] with an error: the network
// is broken.
package serve
