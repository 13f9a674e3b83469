package apply

import (
	"errors"
	"io/fs"
	"path"

	"slipway/installer/store"
)

// unfinishedHere are the temporary names of WriteFile in folders that only a holder of the lock writes to.
var unfinishedHere = map[string]string{
	"state":     `\.settings\.json\.new`,
	receiptsDir: `\.[0-9a-f]{16}\.json\.new`,
}

// sweep removes what a run left that was killed between writing a file and giving it its name, or while it installed an
// engine: such a file would stay for ever where the next plan writes other names. The lock is held, so that no other
// run is writing any of them now.
func sweep(home *Home) error {
	if err := store.SweepTemporary(home.Root); err != nil {
		return err
	}
	for folder, pattern := range unfinishedHere {
		if err := removeMatching(home, folder, pattern); err != nil {
			return err
		}
	}
	names, err := readNames(home.Root, "engines")
	if err != nil {
		return err
	}
	for _, name := range names {
		partial := path.Join("engines", name)
		if !isWorkingFile(path.Join(partial, engineRecordName), false) {
			continue
		}
		if err := removeMatching(home, partial, ".*"); err != nil {
			return err
		}
		if err := home.Root.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotEmpty(err) {
			return err
		}
	}
	return nil
}

// removeMatching removes the working files of a folder whose names are these.
func removeMatching(home *Home, folder, pattern string) error {
	names, err := readNames(home.Root, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		full := path.Join(folder, name)
		info, err := home.Root.Lstat(full)
		if err != nil || !info.Mode().IsRegular() || !isWorkingFile(full, false) || !whole(pattern).MatchString(name) {
			continue
		}
		if err := home.Root.Remove(full); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
