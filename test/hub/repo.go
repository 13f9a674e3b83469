package testhub

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"slipway/manifests"
)

// File is one file of a repository. LFS files are pointers in git and whole on the CDN.
type File struct {
	Path    string
	Content Content
	LFS     bool
	// Listed, when set, is what the API says instead of the truth.
	ListedBytes  int64
	ListedSHA256 string
}

// Repo is one repository at one revision.
type Repo struct {
	Name     string
	Revision manifests.Revision
	Gated    bool
	Private  bool
	Disabled bool
	files    []servedFile
}

type servedFile struct {
	File
	sha256, blob string // hexadecimal; blob is that of what git holds
	pointer      int64  // bytes of the LFS pointer
}

// Add makes a real git repository of the files and serves it. git must be installed.
func (s *Server) Add(name string, files ...File) (*Repo, error) {
	repo := &Repo{Name: name}
	var script bytes.Buffer
	var attributes strings.Builder
	for _, f := range files {
		sum := SHA256(f.Content)
		held := &bytes.Buffer{}
		if f.LFS {
			fmt.Fprintf(held, "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", sum,
				f.Content.Size())
			fmt.Fprintf(&attributes, "%s filter=lfs diff=lfs merge=lfs -text\n",
				strings.ReplaceAll(f.Path, " ", "[[:space:]]"))
		} else {
			whole := make([]byte, f.Content.Size())
			f.Content.ReadAt(whole, 0)
			held.Write(whole)
		}
		h := sha1.New()
		fmt.Fprintf(h, "blob %d\x00", held.Len())
		h.Write(held.Bytes())
		served := servedFile{File: f, sha256: sum, blob: hex.EncodeToString(h.Sum(nil))}
		if f.LFS {
			served.pointer = int64(held.Len())
		}
		repo.files = append(repo.files, served)
		fmt.Fprintf(&script, "blob\nmark :%d\ndata %d\n%s\n", len(repo.files), held.Len(), held.Bytes())
	}
	fmt.Fprintf(&script, "commit refs/heads/main\ncommitter Test <test@example.invalid> 1700000000 "+
		"+0000\ndata 4\ntest\n")
	if attributes.Len() > 0 {
		fmt.Fprintf(&script, "M 100644 inline .gitattributes\ndata %d\n%s\n", attributes.Len(), attributes.String())
	}
	for i, f := range repo.files {
		fmt.Fprintf(&script, "M 100644 :%d %s\n", i+1, quotePath(f.Path))
	}
	dir := filepath.Join(s.gitRoot, name+".git")
	if err := git("", nil, "init", "-q", "--bare", "-b", "main", dir); err != nil {
		return nil, err
	}
	if err := git(dir, script.Bytes(), "fast-import", "--quiet"); err != nil {
		return nil, err
	}
	for _, setting := range []string{"uploadpack.allowReachableSHA1InWant", "uploadpack.allowTipSHA1InWant",
		"uploadpack.allowFilter"} {
		if err := git(dir, nil, "config", setting, "true"); err != nil {
			return nil, err
		}
	}
	head, err := exec.Command("git", "-C", dir, "rev-parse", "main").Output()
	if err != nil {
		return nil, err
	}
	repo.Revision = manifests.Revision(strings.TrimSpace(string(head)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[name] = repo
	return repo, nil
}

// Lock is the true lock of a repository.
func (r *Repo) Lock() manifests.Lock {
	lock := manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: r.Name, Revision: r.Revision,
		Source: "test hub"}
	for _, f := range r.files {
		lock.Files = append(lock.Files, manifests.File{Path: f.Path, Size: f.Content.Size(),
			SHA256: manifests.Digest("sha256:" + f.sha256), Proof: manifests.Proven})
	}
	data, err := lock.Marshal()
	if err != nil {
		panic(err)
	}
	if lock, err = manifests.ParseLock(data); err != nil {
		panic(err)
	}
	return lock
}

func (r *Repo) file(path string) (servedFile, bool) {
	for _, f := range r.files {
		if f.Path == path {
			return f, true
		}
	}
	return servedFile{}, false
}

func git(dir string, stdin []byte, args ...string) error {
	if dir != "" {
		args = append([]string{"-C", dir}, args...)
	}
	cmd := exec.Command("git", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// quotePath writes a path as git fast-import wants it.
func quotePath(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(p) + `"`
}
