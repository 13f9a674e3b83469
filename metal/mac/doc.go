// Package mac asks macOS for what a server needs besides the GPU: how short memory is, and that the machine
// does not sleep while it works. Elsewhere memory is never short and nothing sleeps.
package mac
