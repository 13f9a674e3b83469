package operate

import (
	"context"
	"reflect"
	"time"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/launch"
)

// serving is what was set up and ran before a run.
type serving struct {
	settings *apply.Settings // nil: nothing was set up
	record   *launch.Record  // nil: no server ran
}

// whatServes looks before a run that may replace a server. What cannot be read counts as absent.
func (o *Operator) whatServes(ctx context.Context) (was serving) {
	o.inHome(func(home *apply.Home) error {
		if set, err := apply.ReadSettings(home); err == nil {
			was.settings = &set
		}
		if status, err := launch.Look(ctx, home.Root, home.Path); err == nil && status.State == launch.Running {
			was.record = &status.Record
		}
		return nil
	})
	return was
}

// RolledBackError is the error of a run that failed, and what was undone.
type RolledBackError struct {
	Err          error // why the run failed
	SettingsBack bool  // the old settings are back and the plan is closed
	Server       ServerBack
	Problem      error // what could not be undone; nil: nothing
	ProblemAt    UndoStep
	Verb         string // of the run
}

// ServerBack is how the old server is after a failed run.
type ServerBack string

// How the old server is. Empty: there was none.
const (
	ServerRestarted ServerBack = "restarted"
	ServerKept      ServerBack = "kept"
)

// UndoStep is a step of undoing a failed run.
type UndoStep string

// The steps that can fail.
const (
	UndoSettings UndoStep = "settings"
	UndoPlan     UndoStep = "plan"
	UndoServer   UndoStep = "server"
)

func (e *RolledBackError) Error() string { return e.Err.Error() }

func (e *RolledBackError) Unwrap() error { return e.Err }

// Fault is that of the failed run.
func (e *RolledBackError) Fault() fault.Fault {
	f, _ := fault.Of(e.Err)
	return f
}

// rollBackLimit bounds the undoing, which a stopped run still does: a large model loads in minutes.
const rollBackLimit = 10 * time.Minute

// rollBack undoes what a failed run changed of a working set-up: the old settings come back, the failed plan is closed,
// and the old server runs again if it was replaced by one that did not start. A run that a person stopped stays open,
// because the same command continues it; only a server that is gone comes back then. Where nothing was set up before,
// or this run changed nothing, there is nothing to undo.
func (o *Operator) rollBack(ctx context.Context, p installer.Prepared, old serving, err error) error {
	if f, ok := fault.In(context.Cause(ctx)); ok && f.Class.Stopped() {
		err = context.Cause(ctx) // what failed, failed because of it
	}
	cause := paused(err)
	if old.settings == nil {
		return cause
	}
	stopped := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollBackLimit)
	defer cancel()
	result := cause
	o.inHome(func(home *apply.Home) error {
		if open, err := apply.OpenDigest(home); err != nil || open != p.Plan.Digest {
			return nil // this run did not begin
		}
		status, err := launch.Look(ctx, home.Root, home.Path)
		if err != nil {
			return nil
		}
		now, err := apply.ReadSettings(home)
		changed := !stopped && (err != nil || !reflect.DeepEqual(now, *old.settings))
		lost := old.record != nil && status.State != launch.Running
		if !changed && !lost {
			return nil
		}
		return o.locked(home, func() error {
			result = o.undo(ctx, home, p, old, cause, stopped, lost)
			return nil
		})
	})
	return result
}

func (o *Operator) undo(ctx context.Context, home *apply.Home, p installer.Prepared, old serving, cause error, stopped,
	lost bool) error {
	e := &RolledBackError{Err: cause, Verb: o.Verb}
	fail := func(at UndoStep, err error) error {
		e.ProblemAt, e.Problem = at, err
		return e
	}
	if err := apply.WriteSettings(home, *old.settings); err != nil {
		return fail(UndoSettings, err)
	}
	if !stopped {
		if err := apply.Abandon(home, p.Plan.Digest, o.options()); err != nil {
			return fail(UndoPlan, err)
		}
		e.SettingsBack = true
	}
	switch {
	case lost:
		if _, err := launch.Start(ctx, home.Root, home.Path, old.record.Settings, false); err != nil {
			return fail(UndoServer, err)
		}
		e.Server = ServerRestarted
	case old.record != nil:
		e.Server = ServerKept
	}
	return e
}
