package pin

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"slipway/fault"
	"slipway/manifests"
)

// Source brings what a lock is made from. Mirror sources may bring a proof; they are not believed without one.
type Source interface {
	Pack(ctx context.Context, repo string, revision manifests.Revision) ([]byte, error)
	// List is what the API says. SHA256 is "" for a small file, whose bytes are then needed.
	List(ctx context.Context, repo string, revision manifests.Revision) ([]manifests.File, error)
	// Small brings a small file whole.
	Small(ctx context.Context, repo string, revision manifests.Revision, file string) ([]byte, error)
	// Unreachable distinguishes a git side that cannot be reached or does not give out the commit from a refusal.
	Unreachable(err error) bool
	// Silent reports that not one answer of the git side came.
	Silent(err error) bool
	// Reach asks the API once, after Pack failed with an error. nil: it answers, and has this revision.
	Reach(ctx context.Context, repo string, revision manifests.Revision, failed error) error
	Mirror() bool
	Name() string
}

// Ask says what to lock.
type Ask struct {
	Repo           string
	Revision       manifests.Revision
	Include        []string // globs of path.Match on the whole path or on the last element; none is all
	AcceptUnproven bool     // --accept-told: take the API's word where there is no proof
	Now            time.Time
}

// ErrUnproven: there is no proof, and the API's word alone was not accepted.
var ErrUnproven = errors.New("nothing but the hub's API names the hashes of these files")

// UnprovenError carries why there is no proof.
type UnprovenError struct {
	Reason error
	Mirror bool
}

func (e *UnprovenError) Error() string {
	if e.Mirror {
		return fmt.Sprintf("nothing proves that the files of this mirror belong to the revision (%v), and a mirror's "+
			"list without a proof is never used", e.Reason)
	}
	return fmt.Sprintf("nothing proves that these files belong to the revision (%v). With --accept-told the hub's own "+
		"list is used without a proof", e.Reason)
}

// Fault is a missing consent for the hub's word; a mirror's word is never taken.
func (e *UnprovenError) Fault() fault.Fault {
	if e.Mirror {
		return fault.Fault{Class: fault.Human, Step: fault.LeaveMirror}
	}
	return fault.Fault{Class: fault.Consent, Step: fault.NothingDone}
}

func (e *UnprovenError) Unwrap() error { return ErrUnproven }

// ContradictionError: a lock available names other bytes than the proof.
type ContradictionError struct{ Path, Lock, Proof string }

func (e *ContradictionError) Error() string {
	return fmt.Sprintf("%s: the lock says %s, the revision itself says %s", e.Path, e.Lock, e.Proof)
}

// Fault: see package fault.
func (e *ContradictionError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.OtherNetwork}
}

// Lock makes the lock of a revision, proven where the git side can be reached, and says in one sentence what that
// means.
func Lock(ctx context.Context, source Source, ask Ask) (lock manifests.Lock, sentence string, err error) {
	lock = manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: ask.Repo, Revision: ask.Revision,
		LockedAt: ask.Now.UTC().Truncate(time.Second)}
	pack, err := source.Pack(ctx, ask.Repo, ask.Revision)
	if err != nil && source.Unreachable(err) && (source.Silent(err) || source.Mirror()) {
		if noAnswer := source.Reach(ctx, ask.Repo, ask.Revision, err); noAnswer != nil {
			return lock, "", noAnswer // nothing of the hub can be reached: there is nobody's word to take
		}
	}
	switch {
	case err == nil:
		if lock.Files, err = Prove(ask.Revision, pack); err != nil {
			return lock, "", err
		}
		lock.Source = "git objects of " + source.Name()
		sentence = "Every size and hash was derived from the 40 digits of the revision: whoever served the git " +
			"objects, and whoever serves the files, cannot change a byte unnoticed."
	case !source.Unreachable(err):
		return lock, "", err
	case source.Mirror() || !ask.AcceptUnproven:
		return lock, "", &UnprovenError{err, source.Mirror()}
	default:
		if lock.Files, err = listed(ctx, source, ask); err != nil {
			return lock, "", err
		}
		lock.Source = "API of " + source.Name()
		sentence = "Sizes and hashes are what the hub's API says today. They keep the files from changing later; " +
			"nothing proves that they belong to the revision."
	}
	if lock.Files = chosen(lock.Files, ask.Include); len(lock.Files) == 0 {
		return lock, "", &ProofError{"no file of the revision is wanted"}
	}
	data, err := lock.Marshal()
	if err != nil {
		return lock, "", &UnusableError{err}
	}
	lock, err = manifests.ParseLock(data)
	return lock, sentence, err
}

// UnusableError: the revision holds files that no lock can name: two that are one file on a Mac, a name that is no name
// everywhere, too many. That is the repository's fault, whether or not the rest is proven.
type UnusableError struct{ Err error }

func (e *UnusableError) Error() string {
	why := e.Err.Error()
	var refused *manifests.LockError
	if errors.As(e.Err, &refused) {
		why = refused.Why
	}
	return "the repository cannot be installed: " + strings.ToValidUTF8(why, "?")
}

// Fault: see package fault.
func (e *UnusableError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.OtherRevision}
}

func (e *UnusableError) Unwrap() error { return e.Err }

func listed(ctx context.Context, source Source, ask Ask) ([]manifests.File, error) {
	listed, err := source.List(ctx, ask.Repo, ask.Revision)
	if err != nil {
		return nil, err
	}
	var files []manifests.File
	for _, l := range listed {
		if !wanted(l.Path, ask.Include) {
			continue
		}
		f := manifests.File{Path: l.Path, Size: l.Size, SHA256: l.SHA256, Proof: manifests.Unproven}
		if f.SHA256 == "" {
			data, err := source.Small(ctx, ask.Repo, ask.Revision, l.Path)
			if err != nil {
				return nil, err
			}
			if int64(len(data)) != l.Size {
				return nil, &ContradictionError{l.Path, fmt.Sprintf("%d bytes", l.Size),
					fmt.Sprintf("%d bytes", len(data))}
			}
			f.SHA256 = manifests.DigestOf(sha256.Sum256(data))
		}
		files = append(files, f)
	}
	return files, nil
}

func chosen(files []manifests.File, include []string) []manifests.File {
	var out []manifests.File
	for _, f := range files {
		if wanted(f.Path, include) {
			out = append(out, f)
		}
	}
	return out
}

func wanted(file string, include []string) bool {
	for _, glob := range include {
		whole, _ := path.Match(glob, file)
		last, _ := path.Match(glob, path.Base(file))
		if whole || last {
			return true
		}
	}
	return len(include) == 0
}

// Contradicts is a *ContradictionError when a lock available and a proven one disagree on a file that both name, or
// when the first names a file that the revision does not have.
func Contradicts(lock, proven manifests.Lock) error {
	for _, f := range lock.Files {
		p, ok := proven.File(f.Path)
		switch {
		case !ok:
			return &ContradictionError{f.Path, "that it exists", "that it does not"}
		case p.Size != f.Size:
			return &ContradictionError{f.Path, fmt.Sprintf("%d bytes", f.Size), fmt.Sprintf("%d bytes", p.Size)}
		case p.SHA256 != f.SHA256:
			return &ContradictionError{f.Path, string(f.SHA256), string(p.SHA256)}
		}
	}
	return nil
}
