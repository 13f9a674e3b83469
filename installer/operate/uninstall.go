package operate

import (
	"context"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/neighbor"
)

// UninstallInput is the input of Uninstall.
type UninstallInput struct {
	KeepModels bool `json:"keep_models"`
	DryRun     bool `json:"dry_run"` // only say what would be removed
	Yes        bool `json:"yes"`     // without a question
}

// UninstallAnswer is the answer of Uninstall.
type UninstallAnswer struct {
	apply.Removal
	Path   string `json:"-"` // of the home
	DryRun bool   `json:"-"`
}

// Class is OK when it is removed.
func (a UninstallAnswer) Class() fault.Class {
	if a.DryRun {
		return fault.ChangesPending
	}
	return fault.OK
}

// Uninstall stops the server, starts the servers again that were stopped for it, and removes exactly what the receipts
// list.
func (o *Operator) Uninstall(ctx context.Context, in UninstallInput) (UninstallAnswer, error) {
	path, err := o.resolve()
	if err != nil {
		return UninstallAnswer{}, err
	}
	open := apply.OpenMarkedHome
	if in.DryRun {
		open = apply.OpenHome // writes nothing at all
	}
	home, err := open(path, o.Environment.UserHome)
	if err != nil {
		return UninstallAnswer{}, nothingThere(err)
	}
	defer home.Close()
	a := UninstallAnswer{Path: home.Path, DryRun: in.DryRun}
	if a.Removal, err = apply.PlanRemoval(ctx, home, in.KeepModels); err == nil {
		err = o.noteReturns(&a.Removal)
	}
	if err != nil || in.DryRun {
		return a, err
	}
	if !in.Yes {
		notAsked := &Error{Text: "Consent is needed to remove what is set up.",
			Of: fault.Fault{Class: fault.Consent, Step: fault.ShowRemoval}}
		if err := o.agreed(ctx, Question{Removal: &a.Removal, Path: home.Path}, notAsked); err != nil {
			return a, err
		}
	}
	if err := o.restoreBeforeRemoval(ctx, home); err != nil {
		return a, err
	}
	err = o.during("Removing what was set up", func() (err error) {
		a.Removal, err = apply.Uninstall(ctx, home, in.KeepModels)
		return err
	})
	return a, paused(err)
}

// noteReturns says which servers are started again before anything is removed.
func (o *Operator) noteReturns(r *apply.Removal) error {
	system, err := o.neighborhood()
	if err != nil {
		return err
	}
	pending, err := system.Pending()
	for _, p := range pending {
		if p.Result == neighbor.Held || p.Result == neighbor.Would {
			r.Notes = append(r.Notes, p.Back+" first.")
		}
	}
	return err
}

// restoreBeforeRemoval stops our server and starts the neighbours again while their records still exist.
func (o *Operator) restoreBeforeRemoval(ctx context.Context, home *apply.Home) error {
	system, err := o.neighborhood()
	if err != nil {
		return err
	}
	pending, err := system.Pending()
	if err != nil || len(pending) == 0 {
		return err
	}
	return o.locked(home, func() error {
		if _, err := launch.Stop(ctx, home.Root, home.Path); err != nil {
			return err
		}
		list, err := o.restore(ctx)
		if err != nil {
			return err
		}
		for _, r := range list {
			o.Caller.Say(r.Sentence)
		}
		if restoreClass(list, false) != fault.OK {
			return &Error{Text: "A server that slipway stopped could not be started again, and its record lies " +
				"in the home.",
				Of: fault.Fault{Class: fault.Refused, Step: fault.RestoreByHand}}
		}
		return nil
	})
}
