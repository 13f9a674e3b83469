package manifests

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

//go:generate go run slipway/manifests/packdraft
//go:generate go run slipway/manifests/lockpocket

//go:embed *.toml
var manifestFiles embed.FS

// The training folder beside these files is history and stays out of the program.
//
//go:embed pocket/*.json pocket/*.jinja pocket/*.safetensors
var pocketFiles embed.FS

//go:embed locks/*.json
var lockFiles embed.FS

// PocketID is the manifest of the embedded model.
const PocketID = "pocket"

// Pocket is the embedded model as a folder: config.json, tokenizer.json and so on, at its root.
func Pocket() fs.FS {
	sub, err := fs.Sub(pocketFiles, "pocket")
	if err != nil {
		panic(err)
	}
	return sub
}

// All returns the bundled manifests, Pocket first, then by weights, smallest first. The slice is the caller's.
func All() []Manifest { return slices.Clone(bundle().manifests) }

// ByID finds a bundled manifest.
func ByID(id string) (Manifest, bool) {
	for _, m := range bundle().manifests {
		if m.ID == id {
			return m, true
		}
	}
	return Manifest{}, false
}

// BundledLock is the lock shipped for a repository at a revision, where every hash is known.
func BundledLock(repo string, revision Revision) (Lock, bool) {
	l, ok := bundle().locks[repo+"@"+string(revision)]
	l.Files = slices.Clone(l.Files)
	return l, ok
}

type bundled struct {
	manifests []Manifest
	locks     map[string]Lock
}

// bundle parses what is compiled in, once. A fault there is our own bug (the tests parse the same files), so it panics.
var bundle = sync.OnceValue(func() bundled {
	b := bundled{locks: map[string]Lock{}}
	byName := map[string]Lock{}
	must(fs.WalkDir(lockFiles, "locks", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".lock.json") {
			return err
		}
		data, err := lockFiles.ReadFile(p)
		if err != nil {
			return err
		}
		lock, err := ParseLock(data)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		b.locks[lock.Repo+"@"+string(lock.Revision)] = lock
		byName[strings.TrimSuffix(strings.TrimPrefix(p, "locks/"), ".lock.json")] = lock
		return nil
	}))
	names, err := fs.Glob(manifestFiles, "*.toml")
	must(err)
	for _, name := range names {
		data, err := manifestFiles.ReadFile(name)
		must(err)
		m, err := ParseManifest(name, data)
		must(err)
		if lock, ok := byName[m.ID]; ok && m.Embedded {
			m.Revision = lock.Revision // an embedded model's revision is computed from its files, not written by hand
			if m.Draft != nil {
				m.Draft.Revision = lock.Revision // its files are among them
			}
		}
		b.manifests = append(b.manifests, m)
	}
	slices.SortFunc(b.manifests, func(x, y Manifest) int {
		if x.Geometry.WeightsBytes != y.Geometry.WeightsBytes {
			return int(min(max(x.Geometry.WeightsBytes-y.Geometry.WeightsBytes, -1), 1))
		}
		return strings.Compare(x.ID, y.ID)
	})
	return b
})

func must(err error) {
	if err != nil {
		panic("manifests: embedded file: " + err.Error())
	}
}
