package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"slipway/atomicfile"
	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/profiles"
)

// LookAnswer is the answer of DryRun and Doctor. Nothing on the disk was changed.
type LookAnswer struct {
	Ready    bool              `json:"ready"`     // launchable now
	CanApply bool              `json:"can_apply"` // the plan has no blocker
	Digest   string            `json:"digest"`
	Actions  []ActionState     `json:"actions"`
	Checks   []plan.Check      `json:"checks"`
	Blockers []plan.Blocker    `json:"blockers"`
	Proposal profiles.Proposal `json:"proposal"`

	// Alternatives are other models that a person may want instead.
	Alternatives []installer.Alternative `json:"alternatives"`
	DraftCost    string                  `json:"draft_cost"` // bytes and context, a sentence; empty without a draft
	Facts        machine.Facts           `json:"facts"`

	// ServerCan is what the server honours: certain when its probe said so, else what is assumed of this version.
	ServerCan machine.Fact[profiles.Capabilities] `json:"server_can"`

	Prepared installer.Prepared `json:"-"`
}

// ActionState is an action and how far it is.
type ActionState struct {
	plan.Action
	State plan.State `json:"state"`
}

// Class is OK when the server can be started now.
func (a LookAnswer) Class() fault.Class { return classOf(a.Prepared.Assessment) }

func classOf(s plan.Assessment) fault.Class {
	switch {
	case !s.CanApply: // as the set-up would end
		return s.Blockers[0].Kind.Class()
	case s.Ready:
		return fault.OK
	}
	return fault.ChangesPending
}

// DryRun makes the plan of a set-up and changes nothing.
func (o *Operator) DryRun(ctx context.Context, in SetupInput) (LookAnswer, error) {
	o.fillFromSetUp(&in.Input)
	if err := in.Check(); err != nil {
		return LookAnswer{}, err
	}
	if in.SetAsideJournal {
		if err := o.SetAsideJournal(); err != nil {
			return LookAnswer{}, err
		}
	}
	a, err := o.look(ctx, in.Input)
	if err != nil || !a.CanApply {
		return a, err
	}
	if err := a.Prepared.HubProblem(); err != nil {
		return LookAnswer{}, err
	}
	if err := a.Prepared.TooLarge(in.MaxDownloadBytes); err != nil {
		o.Caller.ShowPlan(a.Prepared)
		return LookAnswer{}, err
	}
	return a, nil
}

// Doctor examines what is set up, unless something else was asked for, with the engine that is set up unless a source
// is named.
func (o *Operator) Doctor(ctx context.Context, in installer.Input) (LookAnswer, error) {
	o.fillFromSetUp(&in)
	in.KeepEngine = in.Source == ""
	return o.look(ctx, in)
}

func (o *Operator) look(ctx context.Context, in installer.Input) (LookAnswer, error) {
	p, err := o.prepare(ctx, in)
	if err != nil {
		return LookAnswer{}, err
	}
	a := LookAnswer{Ready: p.Assessment.Ready, CanApply: p.Assessment.CanApply, Digest: p.Plan.Digest,
		Checks: o.ownChecks(p.Assessment.Checks), Blockers: o.ownBlockers(p.Assessment.Blockers),
		Proposal: p.Proposal, Alternatives: p.Alternatives, DraftCost: p.DraftCost, Facts: p.Facts,
		ServerCan: p.Server, Prepared: p}
	for _, action := range p.Plan.Actions {
		a.Actions = append(a.Actions, ActionState{action, p.Assessment.States[action.ID]})
	}
	return a, nil
}

// PlanAnswer is the answer of Plan.
type PlanAnswer struct {
	File     string         `json:"file"` // empty when none was written
	Digest   string         `json:"digest"`
	Plan     plan.Plan      `json:"plan"`
	Classes  []plan.Class   `json:"consent"`
	CanApply bool           `json:"can_apply"`
	Checks   []plan.Check   `json:"checks"`
	Blockers []plan.Blocker `json:"blockers"`
	Apply    []string       `json:"apply"` // argv that does exactly this plan

	Alternatives []installer.Alternative `json:"alternatives"` // other models that a person may want instead
	DraftCost    string                  `json:"draft_cost"`   // bytes and context, a sentence; empty without a draft

	Prepared installer.Prepared `json:"-"`
}

// Class is OK when the server can be started now.
func (a PlanAnswer) Class() fault.Class { return classOf(a.Prepared.Assessment) }

// PlanFileError says that a plan could not be written to a file.
type PlanFileError struct {
	File string
	Err  error
}

func (e *PlanFileError) Error() string {
	return fmt.Sprintf("the plan cannot be written to %q: %v", e.File, e.Err)
}

func (e *PlanFileError) Unwrap() error { return e.Err }

// Fault is a mistake in the command line, unless the system refuses.
func (e *PlanFileError) Fault() fault.Fault {
	f, _ := fault.Of(e.Err)
	if f.Class != fault.NoSpace && f.Class != fault.Human {
		f.Class = fault.Usage
	}
	return fault.Fault{Class: f.Class, Step: fault.AsTheTextSays}
}

// PlanInput is the input of Plan.
type PlanInput struct {
	installer.Input
	File string `json:"out"` // to write the plan to; empty: none
}

// Plan makes a plan. With a file name it writes the plan there, and nothing else.
func (o *Operator) Plan(ctx context.Context, in PlanInput) (PlanAnswer, error) {
	o.fillFromSetUp(&in.Input)
	p, err := o.prepare(ctx, in.Input)
	if err != nil {
		return PlanAnswer{}, err
	}
	if err := p.HubProblem(); err != nil && p.Assessment.CanApply {
		return PlanAnswer{}, err
	}
	a := PlanAnswer{Digest: p.Plan.Digest, Plan: p.Plan, Classes: p.Plan.Classes(), CanApply: p.Assessment.CanApply,
		Checks: o.ownChecks(p.Assessment.Checks), Blockers: o.ownBlockers(p.Assessment.Blockers), Apply: []string{},
		Alternatives: p.Alternatives, DraftCost: p.DraftCost, Prepared: p}
	if in.File == "" {
		return a, nil
	}
	if a.File, err = filepath.Abs(in.File); err != nil {
		return a, err
	}
	// Readable by the person only: the plan names paths of this machine.
	if err := atomicfile.Write(a.File, plan.WriteFile(p.Plan), 0o600); err != nil {
		return a, &PlanFileError{a.File, err}
	}
	if a.CanApply {
		a.Apply = o.Caller.Command("apply", "--plan", a.File, "--digest", p.Plan.Digest)
	}
	return a, nil
}

// fillFromSetUp takes what a request leaves out from what is set up.
func (o *Operator) fillFromSetUp(in *installer.Input) {
	if r, ok := o.recorded(); ok {
		in.FillFrom(r)
	}
}

// recorded is the request that is set up: of the settings, and where those are damaged of the newest receipt. Where
// nothing is set up yet it is that of the open plan.
func (o *Operator) recorded() (r plan.Request, found bool) {
	o.inHome(func(home *apply.Home) error {
		set, err := apply.ReadSettings(home)
		if err == nil {
			r, found = set.Decisions.Request, true
			return nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			begun, err := apply.Open(home)
			if err == nil && begun.Request != nil {
				r, found = *begun.Request, true
			}
			return err
		}
		receipts, err := home.Receipts()
		if err != nil {
			return err
		}
		for _, receipt := range slices.Backward(receipts) {
			if receipt.Complete {
				r, found = receipt.Decisions.Request, true
				return nil
			}
		}
		return nil
	})
	return r, found
}
