package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"slipway/fault"
	"slipway/manifests"
)

// A Candidate is a file on this machine that may hold the bytes of a file of the lock: it has the right size. Only its
// hash decides.
type Candidate struct {
	File string // of the lock
	Path string // absolute
}

// Sources lists folders where other tools keep models: the hub cache, MTPLX, LM Studio, oMLX; and the folders that the
// user names. A folder need not exist. home is the user's home folder.
func Sources(repo string, home string, getenv func(string) string, named ...string) []string {
	org, name, _ := strings.Cut(repo, "/")
	flat := org + "--" + name
	cache := getenv("HF_HUB_CACHE")
	if cache == "" {
		cache = getenv("HUGGINGFACE_HUB_CACHE")
	}
	if cache == "" {
		base := getenv("HF_HOME")
		if base == "" {
			base = filepath.Join(home, ".cache", "huggingface")
			if xdg := getenv("XDG_CACHE_HOME"); xdg != "" {
				base = filepath.Join(xdg, "huggingface")
			}
		}
		cache = filepath.Join(base, "hub")
	}
	return append(append([]string(nil), named...),
		filepath.Join(home, ".mtplx", "models", flat),
		filepath.Join(cache, "models--"+flat, "snapshots"),
		filepath.Join(cache, "models--"+flat, "blobs"),
		filepath.Join(home, ".lmstudio", "models", org, name),
		filepath.Join(home, ".cache", "lm-studio", "models", org, name),
		filepath.Join(home, ".omlx", "models", org, name),
		filepath.Join(home, ".omlx", "models", name),
	)
}

// PullInProgressError: another tool is still writing into a folder that was asked to be adopted.
type PullInProgressError struct{ Folder string }

func (e *PullInProgressError) Error() string {
	return e.Folder + " is being filled by another program (.mtplx-transfer.json is there)"
}

// Fault: see package fault.
func (e *PullInProgressError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Locked, Step: fault.WaitForProgram}
}

// maxWalked bounds how many files of foreign folders are looked at.
const maxWalked = 100_000

// Find looks through the folders for files of the right size, files of the same name first. It reads no bytes and
// follows links of files, never of folders. Folders where a pull is in progress are left out and named in busy.
func Find(ctx context.Context, lock manifests.Lock, folders []string) (found []Candidate, busy []string) {
	bySize := map[int64][]manifests.File{}
	for _, f := range lock.Files {
		if f.Size > 0 {
			bySize[f.Size] = append(bySize[f.Size], f)
		}
	}
	walked := 0
	for _, folder := range folders {
		absolute, err := filepath.Abs(folder)
		if err != nil {
			continue
		}
		if _, err := os.Lstat(filepath.Join(absolute, ".mtplx-transfer.json")); err == nil {
			busy = append(busy, absolute)
			continue
		}
		filepath.WalkDir(absolute, func(path string, entry fs.DirEntry, err error) error {
			if walked++; ctx.Err() != nil || walked > maxWalked {
				return filepath.SkipAll
			}
			if err != nil || entry.IsDir() {
				return nil
			}
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() {
				return nil
			}
			for _, f := range bySize[info.Size()] {
				found = append(found, Candidate{f.Path, path})
			}
			return nil
		})
	}
	sort.SliceStable(found, func(a, b int) bool { return named(found[a]) && !named(found[b]) })
	return found, busy
}

func named(c Candidate) bool {
	return filepath.Base(c.Path) == filepath.Base(filepath.FromSlash(c.File))
}

// meant reports whether a file claims to be the lock's: many small files have the size of another one, and the hub
// cache keeps other revisions beside this one and its blobs under their hashes.
func meant(c Candidate, revision manifests.Revision) bool {
	if _, after, cached := strings.Cut(filepath.ToSlash(c.Path), "/snapshots/"); cached &&
		!strings.HasPrefix(after, string(revision)+"/") {
		return false
	}
	return named(c)
}

// Adopt installs a file of the lock from a file on this machine: cloned where the file system can, else copied, into a
// partial file that is hashed there; what was hashed is what is used. The source is only read. A source with other
// bytes is an *IntegrityError and is left as it is.
func Adopt(ctx context.Context, home *os.Root, lock manifests.Lock, candidate Candidate) error {
	want, ok := lock.File(candidate.File)
	if !ok {
		return &NotInLockError{candidate.File}
	}
	if state, err := stateOf(home, lock, want); err != nil || state.State == OK {
		return err
	}
	src, err := openRegular(candidate.Path)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != want.Size {
		return &IntegrityError{Path: candidate.Path, Expected: want.SHA256, ExpectedBytes: want.Size,
			FoundBytes: info.Size()}
	}
	p, err := OpenPartial(home, want)
	if err != nil {
		return err
	}
	defer p.Close()
	p.Restart()
	var cannot error
	if p.data, cannot = cloneInto(home, src, p.name, p.data); cannot != nil {
		if err := RequireSpace(home, []manifests.File{want}, want.Size); err != nil {
			return err
		}
		if err := p.Reserve(); err != nil {
			return err
		}
		if _, err := copyTo(ctx, p, src, want.Size); err != nil {
			return err
		}
	}
	found, err := HashOf(ctx, io.NewSectionReader(p, 0, want.Size), nil)
	if err != nil {
		return err
	}
	if err := p.Commit(lock, candidate.File, found); err != nil {
		var wrong *IntegrityError
		if errors.As(err, &wrong) {
			wrong.Path = candidate.Path
			p.discard()
		}
		return err
	}
	return nil
}

// AdoptAll takes what it can from the candidates, one good source a file, and says which files it brought. Sources with
// other bytes are left alone; those that have the name of a file of this revision are named in wrong, with both hashes.
func AdoptAll(ctx context.Context, home *os.Root, lock manifests.Lock, candidates []Candidate) (adopted []string,
	wrong []*IntegrityError, err error) {
	done := map[string]bool{}
	for _, c := range candidates {
		if done[c.File] {
			continue
		}
		err := Adopt(ctx, home, lock, c)
		var integrity *IntegrityError
		switch {
		case err == nil:
			done[c.File] = true
			adopted = append(adopted, c.File)
		case errors.As(err, &integrity):
			if meant(c, lock.Revision) {
				wrong = append(wrong, integrity)
			}
		case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
			// another user's file, or one that went away: the download brings it
		default:
			return adopted, wrong, err
		}
	}
	return adopted, wrong, nil
}

// discard empties a partial file whose bytes came from this machine and are wrong: the source still has them.
func (p *Partial) discard() {
	p.removeJournals()
	if p.data != nil {
		p.data.Chmod(0o644)
		p.data.Truncate(0)
	}
}
