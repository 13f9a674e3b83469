// Package keep connects the index of restore points with sequences and files: it restores what is known of a prompt,
// saves restore points at the places that later prompts will continue from, and explains what a prompt cost.
//
//	Admit -> (prefill: Next, Processed)* -> (decode: Processed, Rewind)* -> End
//
// Package memory decides, the network makes states, package disk writes files. Methods are for the goroutine that owns
// the network, unless their comment says that they are safe from any goroutine.
package keep
