// Package cpu is the reference device, and the default off a Mac.
//
// It is schedule-invariant: a row's results depend only on the tokens of its own sequence, never on how a prompt was
// cut, what else was in the pass, how many threads ran or which of them took a task. Three things make it so. Every
// kernel has one order of operations (package kernels). The delta rule runs as the recurrence for any number of rows.
// Attention goes over blocks at absolute positions, block by block, for one row or five hundred.
//
// Activations, keys, values and states are float32. Weights stay quantised and are expanded in registers.
package cpu
