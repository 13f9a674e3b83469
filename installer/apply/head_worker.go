package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"slipway/fault"
	"slipway/installer/store"
	"slipway/manifests"
	"slipway/mtphead"
)

// Head is where a head comes from that is cut out of an original's shards.
type Head struct {
	// Find gets the original's file list and the headers of its shards; nothing is written.
	Find func(ctx context.Context, report func(Event)) (FoundHead, error)
	// Fetch brings the head's tensors into a partial file, from where an earlier run stopped, and judges them by the
	// manifest's digest where it has one.
	Fetch func(ctx context.Context, part *store.Partial, found FoundHead, report func(Event)) error
}

// FoundHead is a head in the shards of an original.
type FoundHead struct {
	Shards  manifests.Lock // of the original
	Tensors mtphead.List
	Source  string // for the lock
}

// headWorker brings an MTP head: ranges of an original's shards, written in 4 bit. Once it is there it is a file with a
// lock as any other.
type headWorker struct {
	filesWorker
	found *FoundHead // shared by the copies of the worker; Tensors nil: not asked yet
}

// Check is done where the head is there with its hash, proven if that is wanted.
func (w headWorker) Check(ctx context.Context, home *Home) (Condition, error) {
	condition, err := w.filesWorker.Check(ctx, home)
	if lock := w.from.List.Lock; lock != nil {
		condition.Done = condition.Done && w.goodEnough(*lock)
	} else {
		condition.MissingBytes += w.part.DownloadBytes
	}
	return condition, err
}

func (w headWorker) goodEnough(lock manifests.Lock) bool {
	return !w.part.ProvenOnly || lock.Unproven() == 0
}

// RangeProofError: bytes of a shard are wanted that nothing ties to the revision, and nobody's word was accepted.
type RangeProofError struct{ Repo string }

func (e *RangeProofError) Error() string {
	return fmt.Sprintf("the MTP head is a part of a shard of %s, the revision proves the hash of a whole shard only, "+
		"and this slipway has no hash of the part. It can be taken with --accept-told, and is then only as good as "+
		"the hub; --draft none goes without it", e.Repo)
}

// Fault is a missing consent for the hub's word.
func (e *RangeProofError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Consent, Step: fault.NothingDone}
}

// Ask finds the head before anything is changed.
func (w headWorker) Ask(ctx context.Context, report func(Event)) error {
	if w.part.ProvenOnly && w.part.SHA256 == "" {
		return &RangeProofError{w.part.Repo}
	}
	found, err := w.from.Head.Find(ctx, report)
	if err != nil {
		return err
	}
	if bytes := found.Tensors.Bytes(); bytes > w.part.CeilingBytes {
		return &CeilingError{w.part.ID, bytes, w.part.CeilingBytes}
	}
	*w.found = found
	return nil
}

// Do fetches the tensors, writes the head in 4 bit under a lock of its own, and lets the fetched bytes go.
func (w headWorker) Do(ctx context.Context, home *Home, report func(Event)) (Outcome, error) {
	if lock := w.from.List.Lock; lock != nil {
		found, err := w.verify(ctx, home)
		if err != nil {
			return Outcome{}, err
		}
		if found.OK() && w.goodEnough(*lock) {
			return w.outcome(*lock), nil
		}
		if err := w.clear(home, found); err != nil {
			return Outcome{}, err
		}
	}
	if w.found.Tensors == nil {
		panic("apply: a head was not asked for before it is fetched")
	}
	part, err := store.OpenPartial(home.Root, w.fetched())
	if err != nil {
		return Outcome{}, err
	}
	defer part.Close()
	if err := w.from.Head.Fetch(ctx, part, *w.found, report); err != nil {
		return Outcome{}, err
	}
	data, err := mtphead.Convert(part, w.found.Tensors)
	if err != nil {
		return Outcome{}, err
	}
	lock := w.lockOf(data)
	if err := store.SaveLock(home.Root, lock); err != nil {
		return Outcome{}, err
	}
	if err := store.Install(ctx, home.Root, lock, mtphead.FileName, bytes.NewReader(data)); err != nil {
		return Outcome{}, err
	}
	if err := part.Discard(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Outcome{}, err
	}
	w.from.List.Lock = &lock
	return w.outcome(lock), nil
}

// fetched is the partial file of the tensors. Its name is their digest where that is known, else that of what they are.
func (w headWorker) fetched() manifests.File {
	digest := w.part.SHA256
	if digest == "" {
		digest = manifests.DigestOf(sum([]byte(fmt.Sprintf("%s %s %+v", w.part.Repo, w.part.Revision,
			w.found.Tensors))))
	}
	return manifests.File{Path: mtphead.FileName, Size: w.found.Tensors.Bytes(), SHA256: digest}
}

// lockOf is the lock of the head that was made.
func (w headWorker) lockOf(data []byte) manifests.Lock {
	proof := manifests.Proven
	if w.part.SHA256 == "" {
		proof = manifests.Unproven
	}
	return manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: w.part.Repo, Revision: w.part.Revision,
		Source: w.found.Source, Files: []manifests.File{{Path: mtphead.FileName, Size: int64(len(data)),
			SHA256: manifests.DigestOf(sum(data)), Proof: proof}}}
}

func (w headWorker) outcome(lock manifests.Lock) Outcome {
	name := store.LockPath(lock.Repo, lock.Revision)
	return Outcome{Items: append(modelItems(lock, w.part.Folder), Item{Kind: FileItem, Path: name}),
		Notes: map[string]string{"lock": digestOf(lock)}}
}
