package operate

import (
	"context"
	"errors"
	"io/fs"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/neighbor"
)

// DownAnswer is the answer of Down.
type DownAnswer struct {
	WasRunning bool `json:"was_running"`
	PID        int  `json:"pid"`
	Killed     bool `json:"killed"` // our server did not end by itself within its time
	// StoppedBy is the home of the slipway that had stopped our server, and does not start it again now; empty: none.
	StoppedBy string `json:"stopped_by"`
	// Neighbors are the servers that were stopped for ours, and how starting them again went.
	Neighbors []neighbor.Outcome `json:"neighbors"`
}

// Class is OK when every neighbour is back or will be.
func (a DownAnswer) Class() fault.Class { return restoreClass(a.Neighbors, false) }

// Down stops our server and starts the servers again that were stopped for it.
func (o *Operator) Down(ctx context.Context) (a DownAnswer, err error) {
	err = o.inUsedHome(func(home *apply.Home) error {
		return o.locked(home, func() error {
			var stopped launch.Stopping
			err := o.during("Stopping the server", func() (err error) {
				stopped, err = launch.Stop(ctx, home.Root, home.Path)
				return err
			})
			if err != nil {
				return err
			}
			// The watchers do the same; each starts once.
			back, err := o.restore(ctx)
			a = DownAnswer{stopped.WasRunning, stopped.PID, stopped.Killed, stopped.StoppedBy, back}
			return err
		})
	})
	return a, err
}

// notRunning says why there is no server to ask.
func (o *Operator) notRunning(home *apply.Home, status launch.Status) error {
	is := func(text string, step fault.Step) error {
		return &Error{Text: text, Of: fault.Fault{Class: fault.NotReady, Step: step}}
	}
	switch status.State {
	case launch.Starting:
		return is("the server is starting and does not answer yet", fault.Repeat)
	case launch.Hung:
		return is("the server lives and does not answer", fault.StopServerFirst)
	case launch.Crashed:
		return is("the server ended by itself", fault.StartOrReadLog)
	}
	if _, err := apply.ReadSettings(home); errors.Is(err, fs.ErrNotExist) {
		return ErrNotSetUp
	}
	return is("the server is not running", fault.Start)
}

// Running is the server of this home, if it answers. Errors: *Error with the class NotReady, and those of a look.
func (o *Operator) Running(ctx context.Context) (set launch.Settings, err error) {
	err = o.inHome(func(home *apply.Home) error {
		status, err := launch.Look(ctx, home.Root, home.Path)
		if err != nil {
			return err
		}
		if by := o.stoppedBy(status); by != nil {
			return &Error{Text: "the server is not running. " + by.Sentence, Facts: by,
				Of: fault.Fault{Class: fault.NotReady, Step: fault.HaveItBack, Args: by.words}}
		}
		if status.State != launch.Running {
			return o.notRunning(home, status)
		}
		set = status.Record.Settings
		return nil
	})
	return set, err
}
