package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/store"
	"slipway/manifests"
)

// VerifyAnswer is the answer of Verify.
type VerifyAnswer struct {
	OK     bool         `json:"ok"`
	Deep   bool         `json:"deep"`
	Files  int          `json:"files"`
	Faults []Difference `json:"faults"`
	Extra  []string     `json:"extra"` // in the model's folder and not in the lock; never touched
	// Unfinished: the set-up was interrupted; what is there already was checked.
	Unfinished bool `json:"unfinished"`
}

// Class is OK when everything is as it should be.
func (a VerifyAnswer) Class() fault.Class {
	switch {
	case !a.OK:
		return fault.ChangesPending
	case a.Unfinished:
		return fault.NotReady
	}
	return fault.OK
}

// Difference is one file that is not as it should be.
type Difference struct {
	Path     string `json:"path"` // below the home; absolute where the model is used in place
	State    string `json:"state"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// VerifyInput is the input of Verify.
type VerifyInput struct {
	Deep bool `json:"deep"` // hash every byte
}

// Verify compares what is installed with its lock and receipt.
func (o *Operator) Verify(ctx context.Context, in VerifyInput) (a VerifyAnswer, err error) {
	a = VerifyAnswer{Deep: in.Deep, Faults: []Difference{}, Extra: []string{}}
	err = o.during("Checking what is installed", func() error {
		return o.inHome(func(home *apply.Home) error { return a.look(ctx, home) })
	})
	return a, err
}

func (a *VerifyAnswer) look(ctx context.Context, home *apply.Home) error {
	set, err := apply.ReadSettings(home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		open, _ := apply.OpenDigest(home)
		a.Unfinished = open != ""
		if err = a.locked(ctx, home); a.Unfinished && errors.Is(err, ErrNotSetUp) {
			err = nil
		}
	case err == nil:
		err = a.setUp(ctx, home, set)
	}
	a.OK = len(a.Faults) == 0
	return err
}

// setUp checks the model and the engine of the settings.
func (a *VerifyAnswer) setUp(ctx context.Context, home *apply.Home, set apply.Settings) error {
	for _, m := range set.Decisions.Parts() {
		lock, err := knownLock(home, m.Repo, m.Revision)
		if err != nil {
			return err
		}
		if m.InPlace != "" {
			err = a.inPlace(ctx, home, lock)
		} else {
			err = a.model(ctx, home, lock)
		}
		if err != nil {
			return err
		}
	}
	a.Files++
	if _, err := apply.EngineOf(home, set.Decisions.Engine.ID); err != nil {
		a.Faults = append(a.Faults, Difference{Path: path.Join("engines", set.Decisions.Engine.ID), State: err.Error()})
	}
	return nil
}

// locked checks the models of a home in which nothing is set up yet: those that a bundle brought.
func (a *VerifyAnswer) locked(ctx context.Context, home *apply.Home) error {
	locked, err := store.Locked(home.Root)
	if err != nil {
		return err
	}
	for _, r := range locked {
		if _, err := home.Root.Lstat(store.ModelDir(r.Repo, r.Revision)); err != nil {
			continue // a lock alone: nothing of it is installed
		}
		lock, err := store.LoadLock(home.Root, r.Repo, r.Revision)
		if err != nil {
			return err
		}
		if err := a.model(ctx, home, lock); err != nil {
			return err
		}
	}
	if a.Files == 0 {
		return ErrNotSetUp
	}
	return nil
}

// model adds what a check of a model in the home found.
func (a *VerifyAnswer) model(ctx context.Context, home *apply.Home, lock manifests.Lock) error {
	report, err := store.Verify(ctx, home.Root, lock, a.Deep)
	if err != nil {
		return err
	}
	a.add(report, store.ModelDir(lock.Repo, lock.Revision))
	a.Extra = append(a.Extra, report.Extra...)
	return nil
}

// inPlace adds what a check of a model that is used in place found; its paths are absolute.
func (a *VerifyAnswer) inPlace(ctx context.Context, home *apply.Home, lock manifests.Lock) error {
	report, err := store.VerifyInPlace(ctx, home.Root, lock, a.Deep)
	if err != nil {
		return err
	}
	a.add(report, "")
	return nil
}

func (a *VerifyAnswer) add(report store.Report, folder string) {
	a.Files += len(report.Files)
	for _, f := range report.Bad() {
		bad := Difference{Path: path.Join(folder, f.Path), State: string(f.State), Expected: string(f.Expected),
			Found: string(f.Found)}
		if f.State == store.WrongSize {
			bad.Expected, bad.Found = fmt.Sprintf("%d bytes", f.ExpectedBytes), fmt.Sprintf("%d bytes", f.FoundBytes)
		}
		a.Faults = append(a.Faults, bad)
	}
}

// knownLock is the lock beside the model, else the one that is shipped.
func knownLock(home *apply.Home, repo string, revision manifests.Revision) (manifests.Lock, error) {
	lock, err := store.LoadLock(home.Root, repo, revision)
	if errors.Is(err, fs.ErrNotExist) {
		if shipped, ok := manifests.BundledLock(repo, revision); ok {
			return shipped, nil
		}
	}
	return lock, err
}
