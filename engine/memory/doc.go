// Package memory keeps what conversations left behind, so that none starts over.
//
// It is pure: no clock, no disk, no network, no device. [Pages] is the book of attention pages. [Index] is the book of
// restore points: a radix tree over token ids for each [Key], in which every point stands at the prefix that it was saved
// behind. The index says which point serves a prompt, what has to go when a budget is full, and why a prompt had to be
// computed that was known before. [Replies] remembers the exact ids that were streamed. Whoever holds states and files
// (engine/serve, engine/memory/disk) does what the index decides.
package memory
