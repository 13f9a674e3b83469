package launch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"slipway/installer/process"
)

// State of our server.
type State string

// The states.
const (
	Stopped  State = "stopped"
	Starting State = "starting" // lives and does not answer as ready yet
	Running  State = "running"
	Crashed  State = "crashed" // was started, ended without being stopped
)

// Status is one look at our server. Record is meaningful unless State is Stopped.
type Status struct {
	State  State
	Record Record
	Health Health // when State is Running or Starting and it answered
}

// Look tells how our server is. It writes nothing.
func Look(ctx context.Context, root *os.Root, homePath string) (Status, error) {
	record, err := ReadRecord(root)
	if errors.Is(err, fs.ErrNotExist) {
		return Status{State: Stopped}, nil
	}
	if err != nil {
		return Status{}, err
	}
	s := Status{State: Crashed, Record: record}
	alive := false
	if record.Process.PID != 0 {
		if alive, err = record.Process.Running(); err != nil {
			return Status{}, err
		}
	} else if lives(root) {
		alive = true // its launcher was killed before it could note the pid
	}
	if !alive {
		return s, nil
	}
	s.State = Starting
	health, err := AskHealth(ctx, record.Settings.Port)
	if err != nil || health.LaunchID != record.LaunchID {
		return s, nil
	}
	s.Health = health
	if record.Process.PID == 0 {
		found, err := process.Observe(health.PID)
		if err != nil || !sameFile(found.Exe, filepath.Join(homePath, filepath.FromSlash(record.Settings.Program))) {
			return s, nil
		}
		s.Record.Process = found
	}
	if health.PID == s.Record.Process.PID && health.Ready {
		s.State = Running
	}
	return s, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
