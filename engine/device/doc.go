// Package device is the set of operations that the network is written against, once, for every device.
//
// A Device owns memory: weights uploaded as matrices, activation buffers, pages of attention keys and values, and
// recurrent states. A Pass records operations and runs them together; a device may run them one after another (cpu) or
// encode them into command buffers (metal). Rows of a pass come in ragged segments, each a run of consecutive tokens of
// one sequence, so that several sequences, prefill chunks and the rows of a verification share one pass.
//
// Contract breaches (wrong shapes, handles of another device) are our bugs and panic. Errors are for the world: no
// memory, a command buffer that failed, a cancelled context.
package device
