package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
)

// writeAtomic puts data under name so that a reader sees the old bytes or the new ones, also after a power cut: a
// temporary file beside it, fsync, rename, fsync of the folder. The folder must exist.
func writeAtomic(home *os.Root, name string, data []byte, mode fs.FileMode) error {
	temporary := name + "." + nonce() + ".new"
	f, err := home.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = home.Rename(temporary, name)
	}
	if err != nil {
		home.Remove(temporary)
		return spaceError(err, name)
	}
	return syncDir(home, path.Dir(name))
}

// syncDir makes renames and removals in a folder durable.
func syncDir(home *os.Root, dir string) error {
	f, err := home.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func nonce() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
