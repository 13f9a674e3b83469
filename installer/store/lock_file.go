package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"slipway/fault"
	"slipway/manifests"
)

// LockFileError: the lock beside a model cannot be used. Set-up writes it again.
type LockFileError struct {
	Path string // below the home
	Err  error
}

func (e *LockFileError) Error() string {
	why := strings.TrimPrefix(e.Err.Error(), "lock: ")
	return e.Path + " is damaged: " + strings.TrimPrefix(why, "document: ")
}

func (e *LockFileError) Unwrap() error { return e.Err }

// Fault: see package fault.
func (e *LockFileError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.RewriteLock}
}

// SaveLock writes the lock beside the model. A lock that is there already and names other bytes for the same revision
// is a *LockConflictError; one that only knows less (told where this one is proven), or that is damaged, is replaced.
func SaveLock(home *os.Root, lock manifests.Lock) error {
	data, err := lock.Marshal()
	if err != nil {
		return err
	}
	if err := home.MkdirAll(RepoDir(lock.Repo), 0o755); err != nil {
		return err
	}
	name := LockPath(lock.Repo, lock.Revision)
	switch there, err := LoadLock(home, lock.Repo, lock.Revision); {
	case errors.Is(err, fs.ErrNotExist), errors.As(err, new(*LockFileError)):
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	default:
		if err := Agree(there, lock); err != nil {
			return err
		}
	}
	return writeAtomic(home, name, data, 0o644)
}

// ReplaceLock writes the lock beside the model whatever the one that is there says: that was asked for. Files that
// the old one vouched for and this one does not are drift from now on.
func ReplaceLock(home *os.Root, lock manifests.Lock) error {
	data, err := lock.Marshal()
	if err != nil {
		return err
	}
	if err := home.MkdirAll(RepoDir(lock.Repo), 0o755); err != nil {
		return err
	}
	return writeAtomic(home, LockPath(lock.Repo, lock.Revision), data, 0o644)
}

// LoadLock reads the lock beside an installed model. Errors: fs.ErrNotExist, *LockFileError.
func LoadLock(home *os.Root, repo string, revision manifests.Revision) (manifests.Lock, error) {
	data, err := home.ReadFile(LockPath(repo, revision))
	if err != nil {
		return manifests.Lock{}, err
	}
	lock, err := manifests.ParseLock(data)
	if err == nil && (lock.Repo != repo || lock.Revision != revision) {
		err = fmt.Errorf("it is the lock of %s at %s", lock.Repo, lock.Revision)
	}
	if err != nil {
		return lock, &LockFileError{LockPath(repo, revision), err}
	}
	return lock, nil
}

// Agree is nil when two locks of one revision name the same bytes for every file that both have. A revision never
// changes, so a difference is a *LockConflictError.
func Agree(a, b manifests.Lock) error {
	if a.Repo != b.Repo || a.Revision != b.Revision {
		return &LockConflictError{a.Repo, "and " + b.Repo + " are two models"}
	}
	for _, f := range a.Files {
		other, both := b.File(f.Path)
		if both && (other.Size != f.Size || other.SHA256 != f.SHA256) {
			return &LockConflictError{f.Path, fmt.Sprintf("has %d bytes and %s in one, %d bytes and %s in the other",
				f.Size, f.SHA256, other.Size, other.SHA256)}
		}
	}
	return nil
}
