package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway/wire"
)

// ErrNoCache says that a folder is no cache of ours.
var ErrNoCache = errors.New("this is no cache folder of slipway")

// Show looks at a folder without taking it into use. Errors: ErrNoCache, or the system's.
func Show(dir string) (wire.CacheContents, error) {
	c := wire.CacheContents{SchemaVersion: 1}
	if err := ours(dir); err != nil {
		return c, err
	}
	for sub, add := range map[string]func(fs.FileInfo){
		"points": func(info fs.FileInfo) {
			c.Points++
			c.PointBytes += info.Size()
			if at := info.ModTime(); c.Oldest.IsZero() || at.Before(c.Oldest) {
				c.Oldest = at
			}
			if at := info.ModTime(); at.After(c.Newest) {
				c.Newest = at
			}
		},
		"pages": func(info fs.FileInfo) { c.Pages++; c.PageBytes += info.Size() },
	} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil { // one that goes meanwhile is not there
				add(info)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "replies")); err == nil {
		c.ReplyBytes = info.Size()
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err == nil {
		lock.Close()
	}
	c.InUse = errors.Is(err, ErrInUse)
	return c, nil
}

// Clear deletes everything that a folder keeps; the folder stays, with its marker and the day's count. Errors:
// ErrNoCache, ErrInUse, or the system's.
func Clear(dir string) error {
	if err := ours(dir); err != nil {
		return err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, name := range []string{"points", "pages", "replies"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("not everything could be deleted: %w", err)
		}
	}
	return nil
}

func ours(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, marker))
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(text) != markerText {
		return ErrNoCache
	}
	return err
}
