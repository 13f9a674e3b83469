package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"slipway/manifests"
)

// Root is a model that must stay, and why: a lock in use, a running server, a receipt.
type Root struct {
	Repo     string
	Revision manifests.Revision
	Why      string
}

// Garbage is one thing that nothing needs. Path is relative to the home.
type Garbage struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	Why   string `json:"why"`
}

// Collect lists what nothing needs: models of no root, partial files of no root's lock and those whose file is
// installed, quarantined files. It removes nothing: that is Remove's, after the list was shown. Files that this program
// did not put there are not in the list: a model's folder is listed file by file, by its lock.
func Collect(home *os.Root, roots []Root) ([]Garbage, error) {
	keep, wanted := map[string]bool{}, map[string]bool{}
	for _, r := range roots {
		keep[ModelDir(r.Repo, r.Revision)] = true
		lock, err := LoadLock(home, r.Repo, r.Revision)
		if err != nil { // a set-up that was interrupted before its first file has no lock beside it yet
			var shipped bool
			if lock, shipped = manifests.BundledLock(r.Repo, r.Revision); shipped {
				err = nil
			}
		}
		if errors.As(err, new(*LockFileError)) {
			return nil, err // what is left of its download is not known to be garbage
		}
		if err == nil {
			for _, f := range lock.Files {
				if state, err := stateOf(home, lock, f); err == nil && state.State != OK {
					wanted[f.SHA256.Hex()] = true
				}
			}
		}
	}
	var garbage []Garbage
	repos, err := fs.ReadDir(home.FS(), ModelsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, entry := range repos {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		models, err := garbageModels(home, path.Join(ModelsDir, entry.Name()), keep)
		if err != nil {
			return nil, err
		}
		garbage = append(garbage, models...)
	}
	garbage = append(garbage, garbageIn(home, quarantineDir, "its hash was wrong", nil)...)
	return append(garbage, garbageIn(home, partialDir, "left over from a download that nothing needs", wanted)...), nil
}

// Locked names every model whose lock is in the home, sorted.
func Locked(home *os.Root) ([]Root, error) {
	names, err := fs.Glob(home.FS(), ModelsDir+"/*/*.lock.json")
	if err != nil {
		return nil, err
	}
	var locked []Root
	for _, name := range names {
		data, err := home.ReadFile(name)
		if err != nil {
			continue
		}
		lock, err := manifests.ParseLock(data)
		if err == nil && LockPath(lock.Repo, lock.Revision) == name {
			locked = append(locked, Root{lock.Repo, lock.Revision, "its lock is here"})
		}
	}
	return locked, nil
}

// RootOf is the model whose folder this is, as ModelDir writes it.
func RootOf(folder, why string) (Root, bool) {
	repo, revision := path.Split(folder)
	r := Root{strings.Replace(path.Base(repo), "--", "/", 1), manifests.Revision(revision), why}
	return r, manifests.ValidateRepo(r.Repo) == nil && r.Revision.Validate() == nil &&
		ModelDir(r.Repo, r.Revision) == folder
}

// garbageModels lists the files of every revision that is not kept, as its lock names them, the lock last.
func garbageModels(home *os.Root, dir string, keep map[string]bool) ([]Garbage, error) {
	entries, err := fs.ReadDir(home.FS(), dir)
	if err != nil {
		return nil, err
	}
	var garbage []Garbage
	for _, entry := range entries {
		revision, isLock := strings.CutSuffix(entry.Name(), ".lock.json")
		model := path.Join(dir, revision)
		if !isLock || keep[model] {
			continue
		}
		data, err := home.ReadFile(path.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		lock, err := manifests.ParseLock(data)
		if err != nil || ModelDir(lock.Repo, lock.Revision) != model {
			continue // not ours to judge
		}
		why, before := "no set-up, running server or recent receipt names this revision", len(garbage)
		for _, f := range lock.Files {
			if info, err := home.Lstat(path.Join(model, f.Path)); err == nil && !info.IsDir() {
				garbage = append(garbage, Garbage{path.Join(model, f.Path), info.Size(), why})
			}
		}
		if _, err := home.Lstat(referencePath(lock)); err != nil && len(garbage) == before {
			continue // a lock made for a model that is still to come
		}
		for _, name := range []string{installedPath(lock.Repo, lock.Revision), referencePath(lock),
			LockPath(lock.Repo, lock.Revision)} {
			if info, err := home.Lstat(name); err == nil {
				garbage = append(garbage, Garbage{name, info.Size(), why})
			}
		}
	}
	return garbage, nil
}

func garbageIn(home *os.Root, dir, why string, wanted map[string]bool) []Garbage {
	entries, err := fs.ReadDir(home.FS(), dir)
	if err != nil {
		return nil
	}
	var garbage []Garbage
	for _, entry := range entries {
		digest, _, _ := strings.Cut(entry.Name(), ".")
		if manifests.Digest("sha256:"+digest).Validate() != nil || wanted[digest] ||
			strings.HasSuffix(entry.Name(), ".lock") {
			continue // a lock file that goes while somebody waits for it would let two processes lock two files
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			garbage = append(garbage, Garbage{path.Join(dir, entry.Name()), info.Size(), why})
		}
	}
	return garbage
}

// Remove removes what Collect listed, and then the folders below models/ that became empty. A partial file that another
// process works on is left. It returns how many bytes were freed.
func Remove(home *os.Root, garbage []Garbage) (freed int64, err error) {
	folders := map[string]bool{}
	for _, g := range garbage {
		if !strings.HasPrefix(g.Path, ModelsDir+"/") || path.Clean(g.Path) != g.Path {
			return freed, &ForeignError{g.Path, "is not below " + ModelsDir}
		}
		if path.Dir(g.Path) == partialDir && heldByOther(home, g.Path) {
			continue
		}
		if err := home.Remove(g.Path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return freed, err
		}
		freed += g.Bytes
		for dir := path.Dir(g.Path); dir != ModelsDir && dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	list := make([]string, 0, len(folders))
	for dir := range folders {
		list = append(list, dir)
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) }) // the deepest first
	for _, dir := range list {
		home.Remove(dir) // fails, and rightly, when something is left in it
	}
	return freed, nil
}

// heldByOther reports whether the lock of a partial file is taken.
func heldByOther(home *os.Root, name string) bool {
	digest, _, _ := strings.Cut(path.Base(name), ".")
	f, err := home.OpenFile(path.Join(partialDir, digest+".lock"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return flock(f) != nil
}
