package operate

import (
	"context"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/store"
)

// GCInput is the input of GC.
type GCInput struct {
	DryRun bool `json:"dry_run"` // only say what would be removed
	All    bool `json:"all"`     // also models that were locked or imported and never set up
	Yes    bool `json:"yes"`     // remove it
}

// GCAnswer is the answer of GC.
type GCAnswer struct {
	DryRun  bool            `json:"dry_run"`
	Garbage []store.Garbage `json:"garbage"`
	Bytes   int64           `json:"bytes"` // of the garbage; without a dry run: freed
}

// Class is OK when nothing is left to remove.
func (a GCAnswer) Class() fault.Class {
	if a.DryRun && len(a.Garbage) > 0 {
		return fault.ChangesPending
	}
	return fault.OK
}

// GarbageError says that there is garbage, and no consent to remove it.
type GarbageError struct{ Answer GCAnswer }

func (e *GarbageError) Error() string { return "consent is needed to remove what nothing needs" }

// Details are the files.
func (e *GarbageError) Details() any { return e.Answer }

// Fault: see package fault.
func (e *GarbageError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Consent, Step: fault.ShowGarbage}
}

// rememberedReceipts is how many of the newest receipts keep their models: the set-up and the one before, so that going
// back needs no download.
const rememberedReceipts = 2

// GC removes models, partial files and quarantined files that nothing needs.
func (o *Operator) GC(ctx context.Context, in GCInput) (a GCAnswer, err error) {
	a = GCAnswer{DryRun: in.DryRun, Garbage: []store.Garbage{}}
	collect := func(home *apply.Home) error {
		roots, err := modelRoots(ctx, home, in.All)
		if err != nil {
			return err
		}
		garbage, err := store.Collect(home.Root, roots)
		if err != nil {
			return err
		}
		a.Garbage = append(a.Garbage, garbage...)
		for _, g := range garbage {
			a.Bytes += g.Bytes
		}
		switch {
		case in.DryRun:
			return nil
		case !in.Yes && len(garbage) > 0:
			return &GarbageError{a}
		}
		a.Bytes, err = store.Remove(home.Root, garbage)
		return err
	}
	err = o.inUsedHome(func(home *apply.Home) error {
		if in.DryRun {
			return collect(home)
		}
		return o.locked(home, func() error { return collect(home) })
	})
	return a, err
}

// modelRoots names the models that must stay: of the set-up, of a running server, of a plan that was begun and not
// finished, of the newest receipts, and, unless all is asked for, those whose lock is here and which were never set up:
// they were locked or imported for later.
func modelRoots(ctx context.Context, home *apply.Home, all bool) ([]store.Root, error) {
	var roots []store.Root
	if set, err := apply.ReadSettings(home); err == nil {
		for _, m := range set.Decisions.Parts() {
			roots = append(roots, store.Root{Repo: m.Repo, Revision: m.Revision, Why: "set up"})
		}
	}
	status, err := launch.Look(ctx, home.Root, home.Path)
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{status.Record.Settings.ModelFolder, status.Record.Settings.DraftFolder} {
		if r, ok := store.RootOf(folder, "a server runs it"); ok && status.Living() {
			roots = append(roots, r)
		}
	}
	begun, err := apply.OpenPaths(home)
	if err != nil {
		return nil, err
	}
	for _, folder := range begun {
		if r, ok := store.RootOf(folder, "a plan that was begun"); ok {
			roots = append(roots, r)
		}
	}
	receipts, err := home.Receipts()
	if err != nil {
		return nil, err
	}
	wasSetUp := map[string]bool{}
	for i, r := range receipts {
		for _, m := range r.Decisions.Parts() {
			wasSetUp[m.Folder] = true
			if i >= len(receipts)-rememberedReceipts {
				roots = append(roots, store.Root{Repo: m.Repo, Revision: m.Revision, Why: "receipt of " + r.Time})
			}
		}
	}
	locked, err := store.Locked(home.Root)
	if err != nil {
		return nil, err
	}
	for _, r := range locked {
		if !all && !wasSetUp[store.ModelDir(r.Repo, r.Revision)] {
			roots = append(roots, r)
		}
	}
	return roots, nil
}
