package operate

import (
	"context"
	"fmt"
	"io"
	"slices"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/neighbor"
	"slipway/installer/plan"
	"slipway/installer/process"
)

// NeighborsAnswer is the answer of Neighbors. Nothing was changed, and no program of a neighbour was run.
type NeighborsAnswer struct {
	Neighbors []neighbor.Server  `json:"neighbors"`
	Stopped   []neighbor.Outcome `json:"stopped"` // by slipway, and not back yet
}

// NeighborsInput is the input of Neighbors.
type NeighborsInput struct {
	Name string `json:"name"` // only servers of this kind, or with this port or pid; empty: all
}

// Neighbors finds the other model servers on this machine and looks whether they work.
func (o *Operator) Neighbors(ctx context.Context, in NeighborsInput) (NeighborsAnswer, error) {
	system, err := o.neighborhood()
	if err != nil {
		return NeighborsAnswer{}, err
	}
	var own []process.Identity
	o.inHome(func(home *apply.Home) error {
		if status, err := launch.Look(ctx, home.Root, home.Path); err == nil {
			own = append(own, status.Record.Process)
		}
		return nil
	})
	var servers []neighbor.Server
	err = o.during("Asking the other servers", func() (err error) {
		servers, err = system.Look(ctx, own...)
		return err
	})
	if err != nil {
		return NeighborsAnswer{}, err
	}
	if in.Name != "" {
		servers = slices.DeleteFunc(servers, func(s neighbor.Server) bool { return !s.Named(in.Name) })
	}
	stopped, err := system.Pending()
	return NeighborsAnswer{append([]neighbor.Server{}, servers...), stopped}, err
}

// RestoreAnswer is the answer of Restore.
type RestoreAnswer struct {
	Neighbors []neighbor.Outcome `json:"neighbors"`
	DryRun    bool               `json:"-"`
}

// Class is Refused where a neighbour could not be restored.
func (a RestoreAnswer) Class() fault.Class { return restoreClass(a.Neighbors, a.DryRun) }

func restoreClass(list []neighbor.Outcome, dryRun bool) fault.Class {
	class := fault.OK
	for _, r := range list {
		switch r.Result {
		case neighbor.PortTaken, neighbor.Failed:
			return fault.Refused
		case neighbor.Would:
			if dryRun {
				class = fault.ChangesPending
			}
		case neighbor.Waiting:
			class = fault.Timeout
		}
	}
	return class
}

// RestoreInput is the input of Restore.
type RestoreInput struct {
	DryRun bool `json:"dry_run"`
	// also start a server whose program file differs from the one that was stopped
	ChangedPrograms bool `json:"changed_program"`
}

// Restore starts the servers again that slipway has stopped.
func (o *Operator) Restore(ctx context.Context, in RestoreInput) (RestoreAnswer, error) {
	system, err := o.neighborhood()
	if err != nil {
		return RestoreAnswer{}, err
	}
	system.ChangedPrograms = in.ChangedPrograms
	var list []neighbor.Outcome
	err = o.during("Starting the other servers again", func() (err error) {
		list, err = system.Restore(ctx, in.DryRun)
		return err
	})
	return RestoreAnswer{list, in.DryRun}, err
}

func (o *Operator) restore(ctx context.Context) ([]neighbor.Outcome, error) {
	a, err := o.Restore(ctx, RestoreInput{})
	return a.Neighbors, err
}

// RestoreExec becomes a neighbour: only slipway itself calls it, in a process of its own.
func (o *Operator) RestoreExec(id string, environment []string, changedPrograms bool, report io.Writer) error {
	system, err := o.neighborhood()
	if err != nil {
		return err
	}
	system.ChangedPrograms = changedPrograms
	return system.RestoreExec(id, environment, report)
}

// WatchRestore outlives its launcher and restores when the neighbour's place is free again.
func (o *Operator) WatchRestore(ctx context.Context, id string, in io.Reader, out io.Writer) error {
	system, err := o.neighborhood()
	if err != nil {
		return err
	}
	return system.WatchRestore(ctx, id, in, out)
}

// restoreLeftBehind starts what an earlier slipway has stopped and did not live to start again, unless this run names
// servers to be stopped anyway. What cannot be restored is reported, and setup continues.
func (o *Operator) restoreLeftBehind(ctx context.Context, allowStop plan.Kinds) {
	if allowStop != "" {
		return
	}
	if err := o.inHome(func(*apply.Home) error { return nil }); err != nil {
		return // no home, no records; the next step reports what is wrong with it
	}
	list, err := o.restore(ctx)
	if err != nil {
		o.Caller.Say(fmt.Sprintf("What slipway stopped earlier could not be looked at: %v", err))
	}
	for _, r := range list {
		if r.Result != neighbor.Held {
			o.Caller.Say(r.Sentence)
		}
	}
}
