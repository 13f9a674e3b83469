package main

import (
	"errors"
	"io"
	"syscall"
)

// exitPipe is the shell's number for a program that SIGPIPE ended. Usually the system does end us; where a parent has
// set SIGPIPE to be ignored we end by ourselves, as quietly.
const exitPipe = 141

// results is standard output. The first write that fails is remembered, and nothing is written after it: an answer with
// a hole in it must not look whole.
type results struct {
	to  io.Writer
	err error
}

func (w *results) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.to.Write(p)
	w.err = err
	return n, err
}

// lostAnswer is the failure of an answer that could not be written.
func lostAnswer(err error) *failure {
	f := &failure{Code: exitInternal, What: "The answer could not be written to standard output: " + err.Error() + ".",
		Then: "What the command did is done. Send the output somewhere else and run the same command again."}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		f.Code = exitNoSpace
	}
	return f
}
