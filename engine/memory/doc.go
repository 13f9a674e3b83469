// Package memory decides what is kept of conversations, so that they continue without computing their prompts again.
//
// It is pure: no clock, no disk, no network, no device. [Pages] counts references to attention pages. [Index] knows the
// restore points: a radix tree over token ids for each [Key], with every point at the prefix that it was saved after.
// The index says which point serves a prompt, which is evicted when a budget is full, and why a known prompt was
// computed again. [Replies] remembers the exact ids that were streamed. The states and files belong to
// engine/memory/keep and engine/memory/disk, which do what the index decides.
package memory
