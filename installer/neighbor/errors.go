package neighbor

import (
	"fmt"
	"strings"
	"time"

	"slipway/fault"
	"slipway/installer/neighbor/record"
)

// stopped is what is done to the server: one whose models are unloaded is not stopped.
func (s Server) stopped() string {
	if s.Channel == record.ChannelUnload {
		return "unloaded"
	}
	return "stopped"
}

// NotIdleError says that a server was not idle at a check, so that nothing was stopped.
type NotIdleError struct {
	Server Server
	Idle   Idle
}

func (e *NotIdleError) Error() string {
	return fmt.Sprintf("%s is not %s: %s", e.Server.Name(), e.Server.stopped(), e.Idle.Sentence())
}

// Fault: see package fault.
func (e *NotIdleError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Refused, Step: fault.WaitUntilIdle}
}

// RefusedError says that slipway does not stop this server at all, and what a person can do.
type RefusedError struct {
	Server Server
	Why    string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("slipway does not stop %s: %s", e.Server.Name(), e.Why)
}

// Fault: see package fault.
func (e *RefusedError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Refused, Step: fault.LeftAlone}
}

// LossError says that a restored server would differ, and that the user did not accept that.
type LossError struct{ Server Server }

func (e *LossError) Error() string {
	return fmt.Sprintf("%s is not %s, because it might not return as it is: %s (--accept-loss allows that)",
		e.Server.Name(), e.Server.stopped(), strings.Join(e.Server.Losses, "; "))
}

// Fault: see package fault.
func (e *LossError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Refused, Step: fault.LeftAlone}
}

// StillRunningError says that a server was asked to end and has not ended. Nothing stronger follows.
type StillRunningError struct {
	Server Server
	After  time.Duration
}

func (e *StillRunningError) Error() string {
	if e.Server.Channel == record.ChannelUnload {
		return fmt.Sprintf("%s was asked to unload its models and still holds them after %s. "+
			"If it unloads them later, slipway loads them again", e.Server.Name(), e.After.Round(time.Second))
	}
	return fmt.Sprintf("%s was asked to end and still runs after %s; slipway kills nothing. If it ends later, "+
		"slipway starts it again; end it yourself if you want its place now",
		e.Server.Name(), e.After.Round(time.Second))
}

// Fault: see package fault.
func (e *StillRunningError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Refused, Step: fault.AsTheTextSays}
}

// RespawnedError says that something started a server again right after it ended.
type RespawnedError struct {
	Server Server // as it was
	PID    int    // its successor
}

func (e *RespawnedError) Error() string {
	return fmt.Sprintf("%s ended and was started again immediately as pid %d: a program that slipway does not know "+
		"keeps it running. Stop it with that program, then run slipway again",
		e.Server.Name(), e.PID)
}

// Fault: see package fault.
func (e *RespawnedError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Refused, Step: fault.AsTheTextSays}
}

// StopError says at which step stopping failed for another reason.
type StopError struct {
	Server Server
	Step   string
	Err    error
}

func (e *StopError) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Server.Name(), e.Step, e.Err)
}

// Fault: see package fault.
func (e *StopError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Refused, Step: fault.RestoreStopped}
}

func (e *StopError) Unwrap() error { return e.Err }
