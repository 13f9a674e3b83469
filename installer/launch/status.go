package launch

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"slipway/installer/neighbor/record"
	"slipway/installer/process"
	"slipway/wire"
)

// State of our server.
type State string

// The states.
const (
	Stopped  State = "stopped"
	Starting State = "starting" // lives and does not answer as ready yet
	Running  State = "running"
	Hung     State = "hung"    // lives, takes connections, and does not answer them
	Crashed  State = "crashed" // was started, ended without being stopped
)

// Status is one look at our server. Record is meaningful unless State is Stopped.
type Status struct {
	State  State
	Record Record
	Health wire.Health // when State is Running or Starting and it answered

	Damage *RecordError // the record cannot be read; the rest was learnt without it
	// Unidentified: a process holds the lock of a living server of this home, and no process could be proved to be it.
	Unidentified bool
	// StoppedBy says which other slipway stopped the server and starts it again, with its restore record there; nil:
	// none. State is Stopped then.
	StoppedBy *record.StoppedBy
	Restore   record.Record

	argv    []string // of a server that was found without its record
	renewed bool     // the record names another program file than the one that runs
}

// Recorded reports whether the record says what was found. Where it does not, the next start writes it again.
func (s Status) Recorded() bool { return s.argv == nil && !s.renewed }

// Living reports whether a process of ours serves, or is about to.
func (s Status) Living() bool { return s.State == Running || s.State == Starting || s.State == Hung }

// Look says how our server is. It writes nothing.
func Look(ctx context.Context, root *os.Root, homePath string) (Status, error) {
	s, err := lookAtProcess(ctx, root, homePath)
	if err != nil || !s.Living() {
		return s, err
	}
	health, err := askHealth(ctx, s.Record.Settings.Port)
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout() && ctx.Err() == nil:
		s.State = Hung
		return s, nil
	case err != nil || health.LaunchID != s.Record.LaunchID:
		return s, nil
	}
	s.Health = health
	if s.Record.Process.PID == 0 {
		id, err := process.Observe(health.PID)
		if err != nil || !sameFile(id.Exe, filepath.Join(homePath, filepath.FromSlash(s.Record.Settings.Program))) {
			return s, nil
		}
		s.Record.Process = id
	}
	if health.PID == s.Record.Process.PID && health.Ready {
		s.State = Running
	}
	return s, nil
}

// lookAtProcess finds the process, by the record and without it. A living one is Starting until its health was asked.
func lookAtProcess(ctx context.Context, root *os.Root, homePath string) (Status, error) {
	s := Status{State: Crashed}
	r, err := readRecord(root)
	noted := err == nil
	switch {
	case noted:
		s.Record = r
	case errors.Is(err, fs.ErrNotExist):
		s.State = Stopped
	case errors.As(err, &s.Damage):
		s.State = Stopped
	default:
		return Status{}, err
	}
	if noted && r.Process.PID != 0 {
		running, err := r.Process.Running()
		if err != nil {
			return Status{}, err
		}
		if running {
			s.State = Starting
			return s, nil
		}
	}
	if f, ok := findServer(ctx, root, homePath); ok {
		s.State = Starting
		if noted && r.LaunchID == f.record.LaunchID {
			s.Record.Process, s.renewed = f.record.Process, true
		} else {
			s.Record, s.argv = f.record, f.argv
		}
		return s, nil
	}
	if lives(root) {
		if noted && r.Process.PID == 0 {
			s.State = Starting // its launcher was killed before it could note the pid
		} else {
			s.Unidentified = true
		}
		return s, nil
	}
	if by, restore, ok := (record.Folder{Home: homePath}).StoppedBy(); ok {
		s.State, s.StoppedBy, s.Restore = Stopped, &by, restore
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

func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}
