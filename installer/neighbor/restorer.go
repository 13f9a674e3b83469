package neighbor

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"slipway/installer/neighbor/record"
)

// restorer is a copy of this program beside the records, there as long as a record is. What restores must not depend
// on the program that stopped: `go run` removes that as soon as it ends, and a person may move or replace it.
const restorer = "slipway"

func (s *System) keepsRestorer() bool {
	_, err := os.Stat(s.folder().Path(restorer))
	return err == nil
}

// installRestorer puts the copy there: a hard link where possible, else the bytes, under its name only when whole.
func (s *System) installRestorer() error {
	path := s.folder().Path(restorer)
	if s.keepsRestorer() || s.Program[0] == path {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Link(s.Program[0], path); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	from, err := os.Open(s.Program[0])
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(filepath.Dir(path), ".slipway-*")
	if err != nil {
		return err
	}
	defer os.Remove(to.Name())
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Chmod(0o700)
	}
	if err == nil {
		err = to.Sync()
	}
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(to.Name(), path)
	}
	return err
}

// forget deletes a record whose neighbour is back, and with the last record what was kept for the sake of all.
func (s *System) forget(id string) error {
	if err := s.folder().Delete(id); err != nil {
		return err
	}
	if records, damaged := s.folder().List(); len(records)+len(damaged) == 0 {
		s.RemoveRebootAgent()
		os.Remove(s.folder().Path(restorer))
	}
	return nil
}

// Folder is where the records of this home lie.
func (s *System) Folder() record.Folder { return s.folder() }
