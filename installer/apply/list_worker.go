package apply

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path"

	"slipway/fault"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
	"slipway/units"
)

// listWorker brings the file list of the model, or of its draft, into the home.
type listWorker struct {
	part plan.Part
	from Source
}

// CeilingError: the files of a model have more bytes than its manifest allows. Nothing of them was fetched.
type CeilingError struct {
	Model               string
	Bytes, CeilingBytes int64
}

func (e *CeilingError) Error() string {
	return fmt.Sprintf("the files of %s have %s, and its manifest allows %s", e.Model, units.Short(e.Bytes),
		units.Short(e.CeilingBytes))
}

// Fault: see package fault.
func (e *CeilingError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Stale, Step: fault.OtherModel}
}

// Check is done where a list is in the home that fits the ceiling, with every hash proven if that is wanted.
func (w listWorker) Check(_ context.Context, home *Home) (Condition, error) {
	lock := w.from.List.Lock
	if lock == nil {
		return Condition{}, nil
	}
	if err := w.fits(*lock); err != nil {
		return Condition{Conflict: err.Error()}, nil
	}
	if home == nil {
		return Condition{}, nil
	}
	_, err := store.LoadLock(home.Root, lock.Repo, lock.Revision)
	return Condition{Done: err == nil && w.goodEnough(*lock)}, nil
}

func (w listWorker) goodEnough(lock manifests.Lock) bool {
	return !w.part.ProvenOnly || lock.Unproven() == 0
}

func (w listWorker) fits(lock manifests.Lock) error {
	if most := w.part.CeilingBytes; lock.TotalBytes() > most {
		return &CeilingError{w.part.ID, lock.TotalBytes(), most}
	}
	return nil
}

// Ask gets the list before anything is changed, where it is not known.
func (w listWorker) Ask(ctx context.Context, report func(Event)) error {
	if known := w.from.List.Lock; known != nil && w.goodEnough(*known) {
		return nil
	}
	lock, err := w.from.Prove(ctx, report)
	if err != nil {
		return err
	}
	if err := w.fits(lock); err != nil {
		return err
	}
	w.from.List.Lock = &lock
	return nil
}

func (w listWorker) Do(_ context.Context, home *Home, _ func(Event)) (Outcome, error) {
	lock := *w.from.List.Lock
	if there, err := store.LoadLock(home.Root, lock.Repo, lock.Revision); err != nil || !w.goodEnough(there) {
		if err := store.SaveLock(home.Root, lock); err != nil {
			return Outcome{}, err
		}
	}
	name := store.LockPath(lock.Repo, lock.Revision)
	return Outcome{Items: []Item{{Kind: FolderItem, Path: path.Dir(name)}, {Kind: FileItem, Path: name}},
		Notes: map[string]string{"lock": digestOf(lock)}}, nil
}

// digestOf is the digest of a lock's canonical bytes. The lock is valid.
func digestOf(lock manifests.Lock) string {
	data, err := lock.Marshal()
	if err != nil {
		panic("apply: a lock that cannot be written: " + err.Error())
	}
	return string(manifests.DigestOf(sum(data)))
}

func sum(data []byte) [32]byte { return sha256.Sum256(data) }
