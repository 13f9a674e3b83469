package pin

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"slipway/manifests"
)

// Prove walks the pack from the revision down and returns every file of the commit, sorted by path, with a SHA-256 and
// size that the revision vouches for. Links and submodules are left out. Errors: *ProofError, *CollisionError,
// *UnusableError.
func Prove(revision manifests.Revision, pack []byte) ([]manifests.File, error) {
	if err := revision.Validate(); err != nil {
		return nil, err
	}
	objects, err := objectsOf(pack)
	if err != nil {
		return nil, err
	}
	commit, ok := objects[string(revision)]
	if !ok || commit.kind != plumbing.CommitObject {
		return nil, &ProofError{"the pack does not hold the commit " + string(revision)}
	}
	line, _, _ := bytes.Cut(commit.data, []byte("\n"))
	tree, found := strings.CutPrefix(string(line), "tree ")
	if !found || manifests.Revision(tree).Validate() != nil {
		return nil, &ProofError{"the commit names no tree"}
	}
	w := walker{objects: objects}
	if err := w.walk("", tree, 0); err != nil {
		return nil, err
	}
	slices.SortFunc(w.files, func(a, b manifests.File) int { return strings.Compare(a.Path, b.Path) })
	return w.files, nil
}

type walker struct {
	objects map[string]object
	files   []manifests.File
	visits  int // one tree named a million times must not become a million folders
}

func (w *walker) walk(dir, tree string, depth int) error {
	if depth > maxDepth {
		return &UnusableError{fmt.Errorf("its folders lie more than %d deep", maxDepth)}
	}
	if w.visits++; w.visits > maxObjects || len(w.files) > maxObjects {
		return &UnusableError{fmt.Errorf("it has more than %d files and folders", maxObjects)}
	}
	o, ok := w.objects[tree]
	if !ok || o.kind != plumbing.TreeObject {
		return &ProofError{"the tree of " + strconv.Quote(dir) + " is missing"}
	}
	for rest := o.data; len(rest) > 0; {
		header, after, ok := bytes.Cut(rest, []byte{0})
		mode, entry, spaced := strings.Cut(string(header), " ")
		if !ok || !spaced || len(after) < 20 || entry == "" || strings.Contains(entry, "/") {
			return &ProofError{"the tree of " + strconv.Quote(dir) + " is damaged"}
		}
		id := fmt.Sprintf("%x", after[:20])
		rest = after[20:]
		where := path.Join(dir, entry)
		if entry == "." || entry == ".." {
			where = dir + "/" + entry // refused later by the rules of paths, not tidied away here
		}
		switch mode {
		case "40000":
			if err := w.walk(where, id, depth+1); err != nil {
				return err
			}
		case "100644", "100755", "100664":
			f, err := w.file(where, id)
			if err != nil {
				return err
			}
			w.files = append(w.files, f)
		}
	}
	return nil
}

func (w *walker) file(where, id string) (manifests.File, error) {
	o, ok := w.objects[id]
	if !ok || o.kind != plumbing.BlobObject {
		return manifests.File{}, &ProofError{"the blob of " + strconv.Quote(where) + " is missing"}
	}
	if digest, size, pointer := parsePointer(o.data); pointer {
		return manifests.File{Path: where, Size: size, SHA256: digest, Proof: manifests.Proven}, nil
	}
	return manifests.File{Path: where, Size: int64(len(o.data)), SHA256: manifests.DigestOf(sha256.Sum256(o.data)),
		Proof: manifests.Proven}, nil
}

// parsePointer reads an LFS pointer: "version" first, then keys sorted, "oid sha256:" and "size" among them, each line
// ended, at most 1,024 bytes (git-lfs, docs/spec.md). Anything else is an ordinary file.
func parsePointer(data []byte) (digest manifests.Digest, size int64, ok bool) {
	const version = "version https://git-lfs.github.com/spec/v1\n"
	text := string(data)
	if len(data) > 1024 || !strings.HasPrefix(text, version) || !strings.HasSuffix(text, "\n") {
		return "", 0, false
	}
	size = -1
	for _, line := range strings.Split(strings.TrimSuffix(text[len(version):], "\n"), "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "oid":
			if digest != "" {
				return "", 0, false
			}
			digest = manifests.Digest(value)
		case "size":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 || size >= 0 || strconv.FormatInt(n, 10) != value {
				return "", 0, false
			}
			size = n
		}
	}
	return digest, size, size >= 0 && digest.Validate() == nil
}
