// Package atomicfile replaces files so that a reader sees the old bytes or the new ones, also after a power cut: a
// temporary file beside the final name, fsync, rename, fsync of the folder.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Replace writes data under name below root. The folder must exist. The temporary name is fixed, so that a killed run
// leaves at most one such file, which the next Replace removes. Nobody else may write name at the same time.
func Replace(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	return ReplaceVia(root, temporary(name), name, data, mode)
}

// temporary is the name through which Replace writes.
func temporary(name string) string { return path.Join(path.Dir(name), "."+path.Base(name)+".new") }

// ReplaceVia is Replace through a temporary name of the caller's choice, in the same folder.
func ReplaceVia(root *os.Root, temporary, name string, data []byte, mode fs.FileMode) error {
	if err := root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		root.Remove(temporary)
		return err
	}
	return SyncFolder(root, path.Dir(name))
}

// Write is Replace for a file in a folder of somebody else's: its temporary name is a new one.
func Write(file string, data []byte, mode fs.FileMode) error {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Base(file)
	return ReplaceVia(root, "."+name+"."+rand.Text()+".new", name, data, mode)
}

// SyncFolder makes renames and removals in a folder below root durable.
func SyncFolder(root *os.Root, folder string) error {
	f, err := root.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
