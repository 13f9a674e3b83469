package store

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway/manifests"
)

// A Reference says that a model is used where it lies, in a folder of the user's, because there is no room for a copy.
// The folder must stay as it is: a file that is cut while a server has it mapped ends that server.
type Reference struct {
	Folder   string              `json:"folder"` // absolute
	Revision manifests.Revision  `json:"revision"`
	Files    map[string]Identity `json:"files"` // by path of the lock
}

func referencePath(lock manifests.Lock) string {
	return ModelDir(lock.Repo, lock.Revision) + ".reference.json"
}

// Refer hashes every file of the lock in folder and, if all are right, records the folder and each file's identity.
func Refer(ctx context.Context, home *os.Root, lock manifests.Lock, folder string) error {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(absolute, ".mtplx-transfer.json")); err == nil {
		return &PullInProgressError{absolute}
	}
	ref := Reference{Folder: absolute, Revision: lock.Revision, Files: map[string]Identity{}}
	for _, f := range lock.Files {
		name := filepath.Join(absolute, filepath.FromSlash(f.Path))
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		found, err := HashOf(ctx, file, nil)
		info, serr := file.Stat()
		file.Close()
		if err != nil || serr != nil {
			return fmt.Errorf("reading %s: %w", name, firstError(err, serr))
		}
		if found != f.SHA256 {
			return &IntegrityError{Path: name, Expected: f.SHA256, Found: found, ExpectedBytes: f.Size, FoundBytes: info.Size()}
		}
		ref.Files[f.Path] = identityOf(info)
	}
	data, err := json.MarshalIndent(ref, "", "  ")
	if err != nil {
		return err
	}
	if err := SaveLock(home, lock); err != nil {
		return err
	}
	return writeAtomic(home, referencePath(lock), append(data, '\n'), 0o644)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// MovedError: a model that is used in place is not what it was when it was hashed.
type MovedError struct{ Path, Why string }

func (e *MovedError) Error() string { return e.Path + " " + e.Why + " since it was checked" }

// Referred is the folder of a model that is used in place, with every identity checked again, which a launch must do.
// fs.ErrNotExist when the model is not used in place; *MovedError when a file is not what it was.
func Referred(home *os.Root, lock manifests.Lock) (string, error) {
	data, err := home.ReadFile(referencePath(lock))
	if err != nil {
		return "", err
	}
	var ref Reference
	if err := json.Unmarshal(data, &ref); err != nil || ref.Revision != lock.Revision || !filepath.IsAbs(ref.Folder) {
		return "", &ForeignError{referencePath(lock), "is not what slipway wrote there"}
	}
	for _, f := range lock.Files {
		name := filepath.Join(ref.Folder, filepath.FromSlash(f.Path))
		info, err := os.Stat(name)
		switch was, known := ref.Files[f.Path]; {
		case err != nil:
			return "", &MovedError{name, "has gone"}
		case !known || identityOf(info) != was || info.Mode()&fs.ModeType != 0:
			return "", &MovedError{name, "has changed"}
		}
	}
	return ref.Folder, nil
}
