package neighbor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"slipway/installer/launch"
	"slipway/installer/neighbor/record"
)

// A slipway-server of another home is a neighbour with a slipway of its own. A note in that home says who stopped it
// and that it will be back (record.StoppedBy); it comes back as that home's server, with its lock, its record and its
// log.

// noteStopped writes the note, for a server with a home.
func (s *System) noteStopped(r record.Record) error {
	if r.OwnHome == "" {
		return nil
	}
	return record.Folder{Home: r.OwnHome}.NoteStopped(record.StoppedBy{Home: s.Home, Record: r.ID,
		At: time.Now().UTC().Truncate(time.Second)})
}

// noted reports whether the note still stands. Without it the home's own slipway has started or stopped the server
// since, and decides alone.
func (s *System) noted(r record.Record) bool {
	by, _, ok := record.Folder{Home: r.OwnHome}.StoppedBy()
	return ok && by.Home == s.Home && by.Record == r.ID
}

// homeSituation is what the server's own home says. settled is false where that is not enough.
func (s *System) homeSituation(ctx context.Context, r record.Record) (now situation, settled bool) {
	root, err := os.OpenRoot(r.OwnHome)
	if errors.Is(err, fs.ErrNotExist) {
		return situation{state: leftAlone, why: homeGone}, true
	}
	if err != nil {
		return situation{state: inTransit, why: "cannot be looked at: " + errText(err)}, true
	}
	defer root.Close()
	status, err := launch.Look(ctx, root, r.OwnHome)
	switch {
	case err != nil:
		return situation{state: inTransit, why: "cannot be looked at: " + errText(err)}, true
	case status.State == launch.Running:
		return situation{state: runsAgain, pid: status.Record.Process.PID}, true
	case status.Living():
		return situation{state: inTransit, pid: status.Record.Process.PID, why: "is starting"}, true
	case !s.noted(r):
		return situation{state: leftAlone, why: ownDecision}, true
	}
	return situation{}, false
}

// Why a server with a home of its own is left as it is.
const (
	homeGone    = "its home is gone"
	ownDecision = "its own slipway has started or stopped it since"
)

// whyLeft says why a server without a note is not started again.
func whyLeft(r record.Record) string {
	if _, err := os.Stat(r.OwnHome); errors.Is(err, fs.ErrNotExist) {
		return homeGone
	}
	return ownDecision
}

// becomeServer makes this process the server of its own home, before it executes the server's program. The lock must
// stay open in the program.
func (s *System) becomeServer(r record.Record) (alive *os.File, err error) {
	root, err := os.OpenRoot(r.OwnHome)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if !s.noted(r) {
		return nil, errors.New(ownDecision)
	}
	return launch.Again(root, r.Program)
}
