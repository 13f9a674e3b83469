// Package wire holds the documents between our programs, each once: what the server answers at /health and
// /slipway/*, what its probe prints, the file that the installer leaves for it, the usage in every reply, and the
// rules of normalisation. Writers and readers share the types, so that a name cannot differ.
//
// It imports nothing of ours. Members are only ever added: a program of another version may be at the other end.
package wire
