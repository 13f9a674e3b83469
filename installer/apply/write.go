package apply

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// WriteFile replaces a file below the home: written beside it, synced, renamed, the folder synced. A reader sees the
// old bytes or the new ones. The temporary name is fixed, so that a killed run leaves at most one.
func WriteFile(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	temporary := path.Join(path.Dir(name), "."+path.Base(name)+".new")
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
	return SyncDir(root, path.Dir(name))
}

// SyncDir makes renames and removals in a folder durable.
func SyncDir(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
