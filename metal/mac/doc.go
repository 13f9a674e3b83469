// Package mac asks macOS what a server needs to know and to have beside the GPU: how short the memory is, and that the machine
// does not sleep while it works. Elsewhere memory is never short and nothing sleeps.
package mac
