package installer

import (
	"context"
	"fmt"

	"slipway/installer/apply"
	"slipway/installer/store"
	"slipway/manifests"
)

// LockInput says which model to lock.
type LockInput struct {
	Home           string
	Model          string
	AcceptUnproven bool // take the hub's word where there is no proof
	Replace        bool // in place of a lock in the home that says otherwise
	Say            func(what string)
}

// Locked is a lock that was made.
type Locked struct {
	Lock     manifests.Lock
	Path     string // below the home
	Sentence string // what the lock is worth
}

// LockModel derives a model's hashes from its revision and leaves the lock in the home, where set-up finds it. A lock
// that is there or shipped and says otherwise is an error: a revision never changes. Replace overrules the one in the
// home, never the shipped one.
func LockModel(ctx context.Context, in LockInput, at Environment) (Locked, error) {
	m, ok := lockable(known{models: at.Manifests}, in.Model)
	if !ok {
		return Locked{}, &ChoiceError{
			fmt.Sprintf("there is no model %q; slipway models list names those that there are",
				in.Model)}
	}
	if m.Embedded {
		return Locked{}, &ChoiceError{m.ID + " is inside this program and locked already"}
	}
	return lockManifest(ctx, m, in, at)
}

// lockable finds a model, or a model's draft that has a repository of its own, by its id.
func lockable(k known, id string) (manifests.Manifest, bool) {
	for _, m := range k.manifests() {
		if draft, ok := m.DraftFiles(); ok && draft.ID == id {
			return draft, true
		}
	}
	return k.manifest(id)
}

func lockManifest(ctx context.Context, m manifests.Manifest, in LockInput, at Environment) (Locked, error) {
	if m.Revision == "" {
		return Locked{}, &ChoiceError{fmt.Sprintf("the manifest of %s names no revision, and a branch is never a pin",
			m.ID)}
	}
	lock, sentence, err := proveList(ctx, m, in.AcceptUnproven, in.Say, at)
	if err != nil {
		return Locked{}, err
	}
	return Locked{lock, store.LockPath(m.Repo, m.Revision), sentence}, saveLock(in, at, lock)
}

func saveLock(in LockInput, at Environment, lock manifests.Lock) error {
	resolved, err := apply.ResolveHome(in.Home, at.UserHome)
	if err != nil {
		return err
	}
	home, err := apply.MakeHome(resolved, at.UserHome)
	if err != nil {
		return err
	}
	defer home.Close()
	held, err := home.Lock("slipway models lock")
	if err != nil {
		return err
	}
	defer held.Release()
	if in.Replace {
		return store.ReplaceLock(home.Root, lock)
	}
	return store.SaveLock(home.Root, lock)
}
