package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes of a run that a signal stopped: 128 and its number.
const (
	exitHangup     = 129
	exitInterrupt  = 130
	exitTerminated = 143
)

// stopError is the cause of a context that a signal ended.
type stopError struct {
	code int
	name string
}

func (e *stopError) Error() string { return fmt.Sprintf("stopped by %s", e.name) }

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
			syscall.SIGINT:  {exitInterrupt, "Ctrl-C"},
			syscall.SIGTERM: {exitTerminated, "SIGTERM"},
			syscall.SIGHUP:  {exitHangup, "SIGHUP: the terminal went away"},
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
			return stop.code
		}
	default:
	}
	return code
}
