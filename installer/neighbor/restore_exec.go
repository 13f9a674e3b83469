package neighbor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"slipway/installer/neighbor/record"
	"slipway/installer/process"
)

// RestoreExec becomes the neighbour of the record: it takes the record's lock, leaves the descriptor open, and executes
// the recorded program in its place. The lock therefore lives exactly as long as the neighbour, also while it loads and
// listens nowhere yet: whoever finds it held knows that the neighbour is back. It returns only when it failed, after
// writing the reason to report (descriptor 3 of the process that startArgv makes).
//
// env is the neighbour's full environment, where the caller was started with it; nil: it is built from the record.
func (s *System) RestoreExec(id string, env []string, report io.Writer) error {
	err := s.restoreExec(id, env)
	if errors.Is(err, record.ErrHeld) {
		fmt.Fprint(report, lockHeld)
	} else {
		fmt.Fprint(report, errText(err))
	}
	return err
}

func (s *System) restoreExec(id string, env []string) error {
	lock, err := s.folder().Lock(record.LockName(id))
	if err != nil {
		return err
	}
	s.at("locked")
	r, err := s.folder().Read(id)
	if errors.Is(err, fs.ErrNotExist) {
		return record.ErrHeld // it was restored, and its record deleted, before we had the lock
	}
	if err != nil {
		return err
	}
	if r.Channel != record.ChannelArgv {
		return fmt.Errorf("this record is not for a command line")
	}
	if running, err := r.Identity().Running(); err != nil || running {
		return fmt.Errorf("the recorded process still runs, or cannot be looked at")
	}
	if taken, err := process.Listened(context.Background(), r.Port); err != nil || taken {
		return fmt.Errorf("port %d is taken", r.Port)
	}
	if s.programChanged(r) {
		return fmt.Errorf("its program is another file than the one that was stopped")
	}
	if err := os.Chdir(r.Cwd); err != nil {
		if r.CwdNeeded {
			return fmt.Errorf("its working folder is gone, and its arguments depend on it: create the folder, or " +
				"start the server yourself")
		}
		if err := os.Chdir(s.UserHome); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "slipway: its working folder %q is gone, so it starts in %q\n", r.Cwd, s.UserHome)
	}
	if env == nil {
		env = []string{}
		if missed, _ := withoutValue(r.EnvNames); len(missed) > 0 {
			fmt.Fprintf(os.Stderr, "slipway: it starts without the variables %s, whose values were not kept\n",
				strings.Join(missed, ", "))
		}
		for name, value := range r.Env {
			env = append(env, name+"="+value)
		}
		slices.Sort(env)
	}
	// Descriptor 3 closes by the exec, which is how the starter learns that it went well.
	unix.CloseOnExec(3)
	if _, err := unix.FcntlInt(lock.Fd(), unix.F_SETFD, 0); err != nil {
		return err
	}
	if r.OwnHome != "" {
		alive, err := s.becomeServer(r)
		if err != nil {
			return err
		}
		if _, err := unix.FcntlInt(alive.Fd(), unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	s.at("exec")
	if err := syscall.Exec(r.Program, r.Argv, env); err != nil {
		return fmt.Errorf("its program cannot be executed: %w", err)
	}
	return nil
}
