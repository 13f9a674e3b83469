package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"slipway/fault"
	"slipway/installer/process"
)

// The server ends by itself within 10 s of SIGTERM; StopLimit leaves it some more. SIGKILL after that is for our own
// server only, whose identity was checked again; nothing is lost by it, because the server keeps nothing but caches.
const (
	StopLimit = 15 * time.Second
	killLimit = 5 * time.Second
)

// Stopping says how a stop went.
type Stopping struct {
	WasRunning bool
	PID        int
	Killed     bool // it did not end by itself
	// StoppedBy is the home of another slipway that had stopped it and would have started it again; empty: none.
	StoppedBy string
}

// ErrUnknownServer: a server of this home lives, and neither its record nor its /health says which process it is.
var ErrUnknownServer = fault.New(fault.Fault{Class: fault.Locked, Step: fault.FindServer},
	"a process holds run/server.lock of this home, and none could be proved to be our server")

// Stop ends our server and returns when it has ended. It is done already when none runs.
func Stop(ctx context.Context, root *os.Root, homePath string) (Stopping, error) {
	return stopWithin(ctx, root, homePath, StopLimit)
}

func stopWithin(ctx context.Context, root *os.Root, homePath string, limit time.Duration) (Stopping, error) {
	status, err := Look(ctx, root, homePath)
	if err != nil {
		return Stopping{}, err
	}
	switch {
	case status.Unidentified:
		return Stopping{}, ErrUnknownServer
	case !status.Living():
		var by string
		if status.StoppedBy != nil {
			by = status.StoppedBy.Home
		}
		return Stopping{StoppedBy: by}, removeRecord(root)
	}
	id := status.Record.Process
	if id.PID == 0 {
		return Stopping{}, ErrUnknownServer
	}
	result := Stopping{WasRunning: true, PID: id.PID}
	handle, err := process.Open(id)
	if errors.Is(err, process.ErrGone) {
		return result, removeRecord(root)
	}
	if err != nil {
		return result, err
	}
	defer handle.Close()
	if ended, err := signalAndWait(ctx, handle, syscall.SIGTERM, limit); err != nil || ended {
		if err == nil {
			err = removeRecord(root)
		}
		return result, err
	}
	result.Killed = true
	ended, err := signalAndWait(ctx, handle, syscall.SIGKILL, killLimit)
	if err != nil {
		return result, err
	}
	if !ended {
		return result, fmt.Errorf("slipway-server (pid %d) does not end, not even by SIGKILL: the system holds it",
			id.PID)
	}
	return result, removeRecord(root)
}

func signalAndWait(ctx context.Context, handle *process.Handle, sig syscall.Signal, limit time.Duration) (bool, error) {
	if err := handle.Signal(sig); err != nil {
		if errors.Is(err, process.ErrGone) {
			return true, nil
		}
		return false, err
	}
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch err := handle.Wait(wait); {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return false, nil
	default:
		return false, err
	}
}
