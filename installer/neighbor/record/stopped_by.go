package record

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"slipway/atomicfile"
	"slipway/installer/process"
)

// StoppedBy is a note in the home of a slipway-server that the slipway of another home has stopped. It lets the home's
// own slipway say so, and it is what lets the other one start the server again: the home's own slipway removes the note
// when it starts or stops its server itself, and then the other one leaves the server alone.
type StoppedBy struct {
	Home   string    `json:"home"`   // of the slipway that stopped it, absolute
	Record string    `json:"record"` // ID of its restore record there
	At     time.Time `json:"at"`
}

// StoppedByPath is where the note lies, below the home.
const StoppedByPath = "run/stopped-by.json"

// NoteStopped writes the note.
func (f Folder) NoteStopped(n StoppedBy) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	home, err := os.OpenRoot(f.Home)
	if err != nil {
		return err
	}
	defer home.Close()
	return atomicfile.Replace(home, StoppedByPath, append(b, '\n'), 0o600)
}

// RemoveStoppedBy removes the note; a missing one is no error.
func RemoveStoppedBy(home *os.Root) error {
	if err := home.Remove(StoppedByPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// StoppedBy reads the note and its record. A note whose record is gone means nothing. Other homes are read as they
// are: nothing in a record is run here.
func (f Folder) StoppedBy() (StoppedBy, Record, bool) {
	home, err := os.OpenRoot(f.Home)
	if err != nil {
		return StoppedBy{}, Record{}, false
	}
	defer home.Close()
	var n StoppedBy
	b, err := home.ReadFile(StoppedByPath)
	if err != nil || json.Unmarshal(b, &n) != nil || n.Home == f.Home || !path.IsAbs(n.Home) {
		return StoppedBy{}, Record{}, false
	}
	r, err := Folder{Home: n.Home}.Read(n.Record)
	return n, r, err == nil && r.OwnHome == f.Home
}

// heldByOther is who keeps the server of this home stopped, and with it the neighbours that were stopped for that
// server: the holders in the other home, or a process without a pid while the other slipway has not started it again.
func (f Folder) heldByOther(seen []string) ([]process.Identity, error) {
	n, r, ok := f.StoppedBy()
	if !ok {
		return nil, nil
	}
	holders, err := Folder{Home: n.Home}.holders(true, append(seen, f.Home))
	if len(holders) == 0 && r.State != StateFailed {
		holders = []process.Identity{{}}
	}
	return holders, err
}
