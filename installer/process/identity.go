// Package process knows what a process is beyond its number: who it is (pid, start time, boot, executable), what it
// was started with, what it listens on, and how to signal it and never a later process with the same pid.
//
// A stored pid means nothing by itself: pids are reused within minutes on a busy machine and all of them after a
// reboot. Everything here therefore works on an Identity and compares it with what runs now before it acts.
package process

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrGone says that no such process runs (a zombie has ended too).
var ErrGone = errors.New("the process has ended")

// ErrHidden says that the system does not let this user look.
var ErrHidden = errors.New("the system does not show this process to this user")

// ChangedError says that another process has the pid now, or that the process executes another program.
type ChangedError struct{ Want, Have Identity }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("pid %d is no longer %s: it is now %s", e.Want.PID, e.Want.program(), e.Have.program())
}

// Identity names one process for as long as the machine is up, and says after a reboot that it is gone.
// The zero Identity matches nothing.
type Identity struct {
	PID int `json:"pid"`
	// StartUS is the start time in microseconds: since boot on Linux (the clock's step is 10 ms), since 1970 on macOS.
	// Only equality means something, and only together with BootID.
	StartUS int64 `json:"start_us"`
	// BootID changes with every boot: boot_id of the kernel on Linux, kern.bootsessionuuid on macOS.
	BootID string `json:"boot_id"`
	// Exe is the absolute path of the executable, empty where the system hides it (another user's process).
	Exe string `json:"exe"`
	// ExeInode separates a replaced file at the same path from the one that runs; 0 where hidden.
	ExeInode uint64 `json:"exe_ino"`
}

func (id Identity) program() string {
	if id.Exe == "" {
		return "a hidden program"
	}
	return id.Exe
}

// Details are an Identity and what the process was started with. Argv and Env may hold secrets: they are never printed.
type Details struct {
	Identity
	UID       int
	ParentPID int
	Started   time.Time // wall clock, for people; exact to about a second on Linux
	Argv      []string  // nil where hidden
	Cwd       string    // empty where hidden, or where the folder is gone
	Env       []string  // NAME=value; nil where hidden
}

// Observe reads the identity of the process that has this pid now. Errors: ErrGone.
func Observe(pid int) (Identity, error) {
	d, err := look(pid, false)
	return d.Identity, err
}

// Look reads identity and details. Errors: ErrGone. What is hidden stays empty.
func Look(pid int) (Details, error) { return look(pid, true) }

// Self is the identity of the calling process.
func Self() (Identity, error) { return Observe(os.Getpid()) }

// Running reports whether the process with exactly this identity runs. An error means neither yes nor no.
func (id Identity) Running() (bool, error) {
	if id.PID <= 0 || id.BootID == "" {
		return false, nil
	}
	now, err := Observe(id.PID)
	if errors.Is(err, ErrGone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return now == id, nil
}

// SameProcess reports whether two identities are the same process, even when it has executed another program in between
// (a launcher that execs what it launches keeps pid and start time).
func (id Identity) SameProcess(other Identity) bool {
	return id.PID == other.PID && id.StartUS == other.StartUS && id.BootID == other.BootID && id.PID > 0
}
