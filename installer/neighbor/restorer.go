package neighbor

import (
	"os"

	"slipway/installer/neighbor/record"
)

// The restorer is a copy of this program in the records' folder, there as long as a record is. What restores must not
// depend on the program that stopped: `go run` removes that as soon as it ends, and a person may move or replace it. It
// is run only where its bytes are those of the program that runs now (record.Folder.HasRestorer).

// ownSum is the digest of this program's own bytes, read once: an upgrade may replace the file.
func (s *System) ownSum() (record.Sum, error) {
	s.own.Do(func() { s.ownIs, s.ownErr = record.SumOf(s.Program[0]) })
	return s.ownIs, s.ownErr
}

// restorer is the path of the copy, where it may be run.
func (s *System) restorer() (string, bool) {
	path := s.folder().Path(record.Restorer)
	sum, err := s.ownSum()
	return path, err == nil && s.folder().HasRestorer(sum)
}

// installRestorer writes the copy. Another version's copy, or anything else under that name, is replaced.
func (s *System) installRestorer() error {
	sum, err := s.ownSum()
	if err != nil {
		return err
	}
	return s.folder().PutRestorer(s.Program[0], sum)
}

// forget deletes a record whose neighbour runs again, and with the last record what all records needed. The note in the
// home of a slipway-server goes first: without its record it means nothing.
func (s *System) forget(r record.Record) error {
	if home, err := os.OpenRoot(r.OwnHome); err == nil {
		if by, _, ok := (record.Folder{Home: r.OwnHome}).StoppedBy(); ok && by.Record == r.ID && by.Home == s.Home {
			err = record.RemoveStoppedBy(home)
		}
		home.Close()
		if err != nil {
			return err
		}
	}
	if err := s.folder().Delete(r.ID); err != nil {
		return err
	}
	s.tidy()
	return nil
}

// tidy removes what records need once there is none.
func (s *System) tidy() {
	if records, damaged := s.folder().List(); len(records)+len(damaged) == 0 {
		s.RemoveRebootAgent()
		os.Remove(s.folder().Path(record.Restorer))
	}
}

// Folder is the folder of this home's records.
func (s *System) Folder() record.Folder { return s.folder() }
