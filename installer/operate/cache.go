package operate

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/plan"
)

// CacheAnswer is the answer of ShowCache, and of ClearCache: what was there before.
type CacheAnswer struct {
	Folder      string    `json:"folder"`
	BudgetBytes int64     `json:"budget_bytes"` // 0: the server that is set up keeps nothing on disk
	Points      int       `json:"points"`
	Bytes       int64     `json:"bytes"`
	Oldest      time.Time `json:"oldest,omitzero"` // point; absent without any
	Newest      time.Time `json:"newest,omitzero"`
	InUse       bool      `json:"in_use"`
	Cleared     bool      `json:"cleared"`

	Never bool `json:"-"` // nothing was ever kept
}

// ShowCache says how much of conversations is kept on disk.
func (o *Operator) ShowCache(ctx context.Context) (a CacheAnswer, err error) {
	err = o.inUsedHome(func(home *apply.Home) error {
		a, _, err = o.lookAtCache(ctx, home)
		return err
	})
	return a, err
}

// ClearCacheInput is the input of ClearCache.
type ClearCacheInput struct {
	Yes bool `json:"yes"` // without a question
}

// ClearCache deletes what is kept. It does so only while no server of this home runs: the home's lock keeps one from
// being started meanwhile.
func (o *Operator) ClearCache(ctx context.Context, in ClearCacheInput) (a CacheAnswer, err error) {
	err = o.inUsedHome(func(home *apply.Home) error {
		return o.locked(home, func() error {
			a, err = o.clearCache(ctx, home, in.Yes)
			return err
		})
	})
	return a, err
}

func (o *Operator) clearCache(ctx context.Context, home *apply.Home, yes bool) (CacheAnswer, error) {
	a, program, err := o.lookAtCache(ctx, home)
	if err != nil || a.Never {
		return a, err
	}
	status, err := launch.Look(ctx, home.Root, home.Path)
	if err != nil {
		return a, err
	}
	if a.InUse || status.Living() || status.Unidentified {
		return a, &Error{Text: "The server is running and uses what is kept.",
			Of: fault.Fault{Class: fault.Locked, Step: fault.StopServer}}
	}
	if !yes {
		notAsked := &Error{Text: "Consent is needed to delete what is kept of conversations.",
			Of: fault.Fault{Class: fault.Consent, Step: fault.AddYes}}
		if err := o.agreed(ctx, Question{Cache: &a}, notAsked); err != nil {
			return a, err
		}
	}
	err = launch.ClearCache(ctx, program, a.Folder)
	a.Cleared = err == nil
	return a, err
}

// lookAtCache asks the server program that is set up.
func (o *Operator) lookAtCache(ctx context.Context, home *apply.Home) (a CacheAnswer, program string, err error) {
	set, err := apply.ReadSettings(home)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotSetUp
	}
	if err != nil {
		return a, "", err
	}
	a = CacheAnswer{Folder: filepath.Join(home.Path, plan.CachePath), BudgetBytes: set.Decisions.Profile.CacheDiskBytes}
	if _, err := home.Root.Lstat(plan.CachePath); errors.Is(err, fs.ErrNotExist) {
		a.Never = true
		return a, "", nil
	}
	id := set.Decisions.Engine.ID
	if _, err := apply.EngineOf(home, id); err != nil {
		return a, "", &Error{Text: "The server program is not as it was set up, and it is what reads the folder.",
			Of: fault.Fault{Class: fault.NotReady, Step: fault.SetUpAgain}}
	}
	program = filepath.Join(home.Path, filepath.FromSlash(plan.EnginePath(id)))
	held, err := launch.ShowCache(ctx, program, a.Folder)
	if err != nil {
		return a, "", err
	}
	a.Points, a.Bytes, a.Oldest, a.Newest, a.InUse = held.Points, held.Bytes(), held.Oldest, held.Newest, held.InUse
	return a, program, nil
}
