package manifests

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// PocketRepo is the name under which the embedded model is stored; there is no such repository on any hub.
const PocketRepo = "slipway/pocket"

// LockFolder makes the lock of an embedded model from its files. The revision is the id of the git tree object that
// holds exactly these files (mode 100644), so it names the content and anyone can recompute it. Folders are refused:
// an embedded model is flat.
func LockFolder(repo, source string, folder fs.FS) (Lock, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return Lock{}, err
	}
	lock := Lock{SchemaVersion: LockSchemaVersion, Repo: repo, Source: source}
	var tree strings.Builder
	for _, entry := range entries { // ReadDir sorts by name, which is git's order for plain files
		if !entry.Type().IsRegular() {
			return Lock{}, fmt.Errorf("%s is not a plain file", entry.Name())
		}
		file, blob, err := hashFile(folder, entry.Name())
		if err != nil {
			return Lock{}, err
		}
		lock.Files = append(lock.Files, file)
		fmt.Fprintf(&tree, "100644 %s\x00%s", entry.Name(), blob)
	}
	slices.SortFunc(lock.Files, byPath)
	object := sha1.New()
	fmt.Fprintf(object, "tree %d\x00%s", tree.Len(), tree.String())
	lock.Revision = Revision(hex.EncodeToString(object.Sum(nil)))
	return lock, lock.Validate()
}

// hashFile returns a file's lock entry and its git blob id (20 bytes).
func hashFile(folder fs.FS, name string) (File, []byte, error) {
	f, err := folder.Open(name)
	if err != nil {
		return File{}, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, nil, err
	}
	content, blob := sha256.New(), sha1.New()
	fmt.Fprintf(blob, "blob %d\x00", info.Size())
	n, err := io.Copy(io.MultiWriter(content, blob), f)
	if err != nil {
		return File{}, nil, err
	}
	if n != info.Size() {
		return File{}, nil, fmt.Errorf("%s: %d bytes read, %d expected", name, n, info.Size())
	}
	return File{Path: name, Size: n, SHA256: DigestOf(sum32(content)), Proof: Embedded}, blob.Sum(nil), nil
}

func sum32(h hash.Hash) (sum [32]byte) {
	copy(sum[:], h.Sum(nil))
	return sum
}
