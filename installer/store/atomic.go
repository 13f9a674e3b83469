package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"

	"slipway/atomicfile"
)

// writeAtomic puts data under name so that a reader sees the old bytes or the new ones, also after a power cut: a
// temporary file beside it, fsync, rename, fsync of the folder. The folder must exist.
func writeAtomic(home *os.Root, name string, data []byte, mode fs.FileMode) error {
	temporary := name + "." + nonce() + ".new"
	return spaceError(atomicfile.ReplaceVia(home, temporary, name, data, mode), name)
}

// temporaryName is what writeAtomic leaves of a file when it is killed before the rename: its name, 12 hex digits, new.
var temporaryName = regexp.MustCompile(
	`^(?:[0-9a-f]{40}\.(?:lock|reference)\.json|[0-9a-f]{64}(?:\.[0-9a-f]{12})?(?:\.part)?\.json)\.[0-9a-f]{12}\.new$`)

// IsTemporary reports whether a path, relative to the home, is a file that a killed run was writing and that never got
// its name.
func IsTemporary(name string) bool {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	return (dir == partialDir || dir == quarantineDir || path.Dir(dir) == ModelsDir) && temporaryName.MatchString(base)
}

// SweepTemporary removes such files. Nobody else may write in the home meanwhile: the caller holds its lock.
func SweepTemporary(home *os.Root) error {
	folders, err := fs.ReadDir(home.FS(), ModelsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		dir := path.Join(ModelsDir, folder.Name())
		files, err := fs.ReadDir(home.FS(), dir)
		if err != nil {
			return err
		}
		for _, file := range files {
			name := path.Join(dir, file.Name())
			if !file.Type().IsRegular() || !IsTemporary(name) {
				continue
			}
			if err := home.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func nonce() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
