package main

import "context"

// read reads what another program may be writing: such a read has no end of its own, and a signal ends it. Errors: the
// context's cause, those of from.
func (s *session) read(from func() ([]byte, error)) ([]byte, error) {
	var data []byte
	var err error
	done := make(chan struct{})
	go func() {
		data, err = from()
		close(done)
	}()
	select {
	case <-done:
		return data, err
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}
