// Package keep brings sequences to prompts: it restores what is known of a prompt, saves restore points at the boundaries
// that will be asked for again, and says what a prompt cost and why.
//
//	Admit -> (prefill: Next, Reached)* -> (decode: Decoded)* -> End
//
// The book and its decisions are package memory's; the states are the network's; files are package disk's. All methods but
// those said to be are for the goroutine that owns the network.
package keep
