package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"slipway/fault"
)

// stopError is the cause of a context that a signal ended.
type stopError struct {
	class fault.Class // 128 and the signal's number
	name  string
}

func (e *stopError) Error() string { return fmt.Sprintf("stopped by %s", e.name) }

// Fault: see package fault.
func (e *stopError) Fault() fault.Fault { return fault.Fault{Class: e.class} }

type signalWatch struct{ got chan *stopError }

// watchSignals ends the context at the first Ctrl-C, SIGTERM or SIGHUP. The second one ends the program at once, as if
// nobody watched.
func watchSignals(parent context.Context) (context.Context, *signalWatch) {
	ctx, cancel := context.WithCancelCause(parent)
	watch := &signalWatch{got: make(chan *stopError, 1)}
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		sig := <-arrived
		signal.Reset(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		stop := map[os.Signal]*stopError{
			syscall.SIGINT:  {fault.Interrupted, "Ctrl-C"},
			syscall.SIGTERM: {fault.Terminated, "SIGTERM"},
			syscall.SIGHUP:  {fault.Hangup, "SIGHUP: the terminal was closed"},
		}[sig]
		watch.got <- stop
		cancel(stop)
	}()
	return ctx, watch
}

// code is the exit code: a command that failed because of a signal says which; one that had finished keeps its own.
func (w *signalWatch) code(code int) int {
	select {
	case stop := <-w.got:
		if code != exitOK {
			return int(stop.class)
		}
	default:
	}
	return code
}
