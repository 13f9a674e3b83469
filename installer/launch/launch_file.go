package launch

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"

	"slipway/wire"
)

// WriteLaunch replaces the file at [wire.LaunchPath]. A reader sees the old one or the new one.
func WriteLaunch(root *os.Root, l wire.Launch) error {
	l.SchemaVersion = 1
	for _, text := range []*string{&l.Profile, &l.Limit} {
		*text = Printable(*text)
	}
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	temporary := path.Join(path.Dir(wire.LaunchPath), "."+path.Base(wire.LaunchPath)+".new")
	if err := root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		root.Remove(temporary)
		return err
	}
	return root.Rename(temporary, wire.LaunchPath)
}
