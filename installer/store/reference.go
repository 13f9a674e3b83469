package store

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"slipway/fault"
	"slipway/manifests"
)

// A Reference says that a model is used in place, in a folder of the user's.
// The folder must stay as it is: a file that is cut while a server has it mapped ends that server.
type Reference struct {
	Folder   string              `json:"folder"` // absolute
	Revision manifests.Revision  `json:"revision"`
	Files    map[string]Identity `json:"files"` // by path of the lock
}

func referencePath(lock manifests.Lock) string {
	return ModelDir(lock.Repo, lock.Revision) + ".reference.json"
}

// ReferencePath is the path of the reference of a model, below the home.
func ReferencePath(lock manifests.Lock) string { return referencePath(lock) }

// WholeIn finds the first folder that could be used in place: every file of the lock is there by name and size, and
// nothing else that a server would read as a part of the model. It reads no bytes. Of the hub cache each snapshot
// counts.
func WholeIn(lock manifests.Lock, folders []string) (string, bool) {
	return firstOf(folders, func(folder string) bool { return wholeIn(lock, folder) })
}

// WeightsIn finds the first folder that holds weights and their config.json, for a model whose file list is not known.
func WeightsIn(folders []string) (string, bool) {
	return firstOf(folders, func(folder string) bool {
		weights, _ := filepath.Glob(filepath.Join(folder, "*.safetensors"))
		_, err := os.Stat(filepath.Join(folder, "config.json"))
		return err == nil && len(weights) > 0
	})
}

// firstOf is the first folder of which good is true, absolute.
func firstOf(folders []string, good func(folder string) bool) (string, bool) {
	for _, folder := range folders {
		absolute, err := filepath.Abs(folder)
		if err != nil {
			continue
		}
		candidates := []string{absolute}
		if filepath.Base(absolute) == "snapshots" {
			candidates = nil
			entries, _ := os.ReadDir(absolute)
			for _, entry := range entries {
				candidates = append(candidates, filepath.Join(absolute, entry.Name()))
			}
		}
		for _, candidate := range candidates {
			if good(candidate) {
				return candidate, true
			}
		}
	}
	return "", false
}

func wholeIn(lock manifests.Lock, folder string) bool {
	if _, err := os.Lstat(filepath.Join(folder, ".mtplx-transfer.json")); err == nil {
		return false
	}
	for _, f := range lock.Files {
		info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(f.Path)))
		if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
			return false
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		_, ours := lock.File(entry.Name())
		switch filepath.Ext(entry.Name()) {
		case ".json", ".jinja", ".safetensors":
			if !ours && !strings.HasPrefix(entry.Name(), ".") {
				return false
			}
		}
	}
	return true
}

// openRegular opens a plain file, and nothing that would keep the open waiting.
func openRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return f, nil
}

// Refer hashes every file of the lock in folder and, if all are right, records the folder and each file's identity.
// hashed, if not nil, gets every chunk.
func Refer(ctx context.Context, home *os.Root, lock manifests.Lock, folder string,
	hashed func(path string, n int)) error {
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
		file, err := openRegular(name)
		if err != nil {
			return err
		}
		tell := func(n int) {
			if hashed != nil {
				hashed(f.Path, n)
			}
		}
		info, serr := file.Stat() // before hashing: what changes meanwhile is another identity at the next launch
		found, err := HashOf(ctx, file, tell)
		file.Close()
		if err != nil || serr != nil {
			return fmt.Errorf("reading %s: %w", name, firstError(err, serr))
		}
		if found != f.SHA256 {
			return &IntegrityError{Path: name, Expected: f.SHA256, Found: found, ExpectedBytes: f.Size,
				FoundBytes: info.Size()}
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

func readReference(home *os.Root, lock manifests.Lock) (Reference, error) {
	var ref Reference
	data, err := home.ReadFile(referencePath(lock))
	if err != nil {
		return ref, err
	}
	if err := json.Unmarshal(data, &ref); err != nil || ref.Revision != lock.Revision || !filepath.IsAbs(ref.Folder) {
		return ref, &ForeignError{referencePath(lock), "is not what slipway wrote there"}
	}
	return ref, nil
}

// VerifyInPlace is Verify of a model that is used in place. Paths of the report are absolute.
func VerifyInPlace(ctx context.Context, home *os.Root, lock manifests.Lock, deep bool) (Report, error) {
	report := Report{Repo: lock.Repo, Revision: lock.Revision, Deep: deep, Files: make([]FileReport, len(lock.Files))}
	ref, err := readReference(home, lock)
	if err != nil {
		return report, err
	}
	for i, f := range lock.Files {
		r := FileReport{Path: filepath.Join(ref.Folder, filepath.FromSlash(f.Path)), Expected: f.SHA256,
			ExpectedBytes: f.Size}
		info, err := os.Stat(r.Path)
		switch was, known := ref.Files[f.Path]; {
		case err != nil:
			r.State = Missing
		case !info.Mode().IsRegular():
			r.State = NotAFile
		default:
			r.identity, r.FoundBytes, r.State = identityOf(info), info.Size(), OK
			if r.FoundBytes != f.Size {
				r.State = WrongSize
			} else if !known || r.identity != was {
				r.State = Changed
			}
		}
		report.Files[i] = r
	}
	if deep {
		err = deepStates(ctx, openRegular, report.Files, nil)
	}
	return report, err
}

// MovedError: a model that is used in place is not what it was when it was hashed.
type MovedError struct{ Path, Why string }

func (e *MovedError) Error() string { return e.Path + " " + e.Why + " since it was checked" }

// Fault: see package fault.
func (e *MovedError) Fault() fault.Fault {
	return fault.Fault{Class: fault.ChangesPending, Step: fault.SetUpMoved}
}

// Referred is the folder of a model that is used in place, with every identity checked again, which a launch must do.
// fs.ErrNotExist when the model is not used in place; *MovedError when a file is not what it was.
func Referred(home *os.Root, lock manifests.Lock) (string, error) {
	ref, err := readReference(home, lock)
	if err != nil {
		return "", err
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
