package device

import "context"

// StoppablePass is a Pass that can be ended between its parts, because one of a prefill may keep a device for many
// seconds.
type StoppablePass interface {
	Pass
	// RunStoppable is Run, except that a context that ends while the pass runs ends it too: the error is a
	// *StoppedError, and the states of all segments are lost.
	RunStoppable(ctx context.Context) error
}

// StoppedError is a pass that was ended after it had begun. It wraps the context's error.
type StoppedError struct{ Err error }

func (e *StoppedError) Error() string { return "a pass was stopped before its end: " + e.Err.Error() }
func (e *StoppedError) Unwrap() error { return e.Err }
