package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"sort"
	"strings"

	"golang.org/x/sync/errgroup"

	"slipway/manifests"
)

// FileState is what a check found under a file's final name.
type FileState string

const (
	OK         FileState = "ok"
	Missing    FileState = "missing"
	BrokenLink FileState = "broken link" // a link to nothing, or out of the home
	NotAFile   FileState = "not a file"  // a folder, a pipe, a link to one
	WrongSize  FileState = "wrong size"
	// the right size, but not the identity that was recorded: the deep check decides
	Changed    FileState = "changed"
	Unrecorded FileState = "unrecorded" // the right size, and no record that it was ever hashed: the deep check decides
	WrongHash  FileState = "wrong hash" // deep only
	Unreadable FileState = "unreadable"
)

// FileReport is one file of the lock. Found is set by the deep check only.
type FileReport struct {
	Path          string           `json:"path"`
	State         FileState        `json:"state"`
	Expected      manifests.Digest `json:"expected"`
	Found         manifests.Digest `json:"found,omitempty"`
	ExpectedBytes int64            `json:"expected_bytes"`
	FoundBytes    int64            `json:"found_bytes"`
	Why           string           `json:"why,omitempty"`

	identity Identity
}

// Report is the outcome of a check. Extra names what is in the model's folder and is not in the lock: it is named,
// never touched.
type Report struct {
	Repo     string             `json:"repo"`
	Revision manifests.Revision `json:"revision"`
	Deep     bool               `json:"deep"`
	Files    []FileReport       `json:"files"`
	Extra    []string           `json:"extra,omitempty"`
}

// OK is true when every file of the lock is as the lock says, as far as this check looks.
func (r Report) OK() bool { return len(r.Bad()) == 0 }

// Bad lists the files that are not.
func (r Report) Bad() []FileReport {
	var bad []FileReport
	for _, f := range r.Files {
		if f.State != OK {
			bad = append(bad, f)
		}
	}
	return bad
}

// Verify compares the installed model with its lock and writes nothing. The fast check looks at size, inode and
// modification time against what was recorded when the hash was right; the deep check hashes every byte, as many files
// at a time as there are cores.
func Verify(ctx context.Context, home *os.Root, lock manifests.Lock, deep bool) (Report, error) {
	return verify(ctx, home, lock, deep, nil)
}

func verify(ctx context.Context, home *os.Root, lock manifests.Lock, deep bool, hashed func(string, int)) (Report,
	error) {
	report := Report{Repo: lock.Repo, Revision: lock.Revision, Deep: deep, Files: make([]FileReport, len(lock.Files))}
	if err := lock.Validate(); err != nil {
		return report, err
	}
	known, err := readInstalled(home, lock)
	if err != nil {
		return report, err
	}
	for i, f := range lock.Files {
		report.Files[i] = fastState(home, lock, f, known)
	}
	if deep {
		open := func(name string) (*os.File, error) { return home.Open(filePath(lock, name)) }
		if err := deepStates(ctx, open, report.Files, hashed); err != nil {
			return report, err
		}
	}
	report.Extra = extras(home, lock)
	return report, nil
}

func stateOf(home *os.Root, lock manifests.Lock, f manifests.File) (FileReport, error) {
	known, err := readInstalled(home, lock)
	return fastState(home, lock, f, known), err
}

func fastState(home *os.Root, lock manifests.Lock, f manifests.File, known map[string]installedLine) FileReport {
	r := FileReport{Path: f.Path, Expected: f.SHA256, ExpectedBytes: f.Size}
	name := filePath(lock, f.Path)
	link, err := home.Lstat(name)
	if err != nil {
		r.State = Missing
		if !errors.Is(err, fs.ErrNotExist) {
			r.State, r.Why = Unreadable, err.Error()
		}
		return r
	}
	info := link
	if link.Mode()&fs.ModeSymlink != 0 {
		if info, err = home.Stat(name); err != nil {
			r.State = BrokenLink
			return r
		}
	}
	if !info.Mode().IsRegular() {
		r.State = NotAFile
		return r
	}
	r.identity, r.FoundBytes = identityOf(info), info.Size()
	line, recorded := known[f.Path]
	switch {
	case info.Size() != f.Size:
		r.State = WrongSize
	case !recorded:
		r.State = Unrecorded
	case line.SHA256 != f.SHA256 || line.Identity != r.identity:
		r.State = Changed
	default:
		r.State = OK
	}
	return r
}

// deepStates hashes every file that has the right size, the largest first so that the cores end together.
func deepStates(ctx context.Context, open func(path string) (*os.File, error), files []FileReport,
	hashed func(string, int)) error {
	order := make([]int, len(files))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return files[order[a]].FoundBytes > files[order[b]].FoundBytes })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, i := range order {
		r := &files[i]
		if r.State != OK && r.State != Changed && r.State != Unrecorded {
			continue
		}
		group.Go(func() error {
			f, err := open(r.Path)
			if err != nil {
				r.State, r.Why = Unreadable, err.Error()
				return nil
			}
			defer f.Close()
			tell := func(n int) {
				if hashed != nil {
					hashed(r.Path, n)
				}
			}
			r.Found, err = HashOf(ctx, f, tell)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				r.State, r.Why = Unreadable, err.Error()
			case r.Found != r.Expected:
				r.State = WrongHash
			default:
				r.State = OK
			}
			return nil
		})
	}
	return group.Wait()
}

// extras lists what is in the model's folder and not in the lock, as paths relative to it.
func extras(home *os.Root, lock manifests.Lock) []string {
	root := ModelDir(lock.Repo, lock.Revision)
	var extra []string
	fs.WalkDir(home.FS(), root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		relative := strings.TrimPrefix(name, root+"/")
		if _, ok := lock.File(relative); !ok && path.Base(relative) != ".DS_Store" {
			extra = append(extra, relative)
		}
		return nil
	})
	return extra
}

// Remember records the identities of the files that a deep check found right, so that fast checks know them.
func Remember(home *os.Root, lock manifests.Lock, report Report) error {
	var lines []installedLine
	for _, f := range report.Files {
		if report.Deep && f.State == OK {
			lines = append(lines, installedLine{f.Path, f.Found, f.identity})
		}
	}
	return appendInstalled(home, lock, lines...)
}
