package neighbor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"slipway/installer/launch"
	"slipway/installer/neighbor/record"
)

// lockHeld is what restore-exec reports when another process holds the record's lock.
const lockHeld = "the lock is held"

// attempt is one attempt to start a neighbour again.
type attempt struct {
	lock *os.File // held by us, for the channels in which no process inherits it
	log  string

	mu   sync.Mutex
	done bool
	why  string
}

// ended reports whether the attempt ended without a running process, and why.
func (a *attempt) ended() (bool, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.done, a.why
}

func (a *attempt) end(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.done {
		a.done, a.why = true, why
	}
}

func (a *attempt) release() {
	if a.lock != nil {
		a.lock.Close()
		a.lock = nil
	}
}

// start takes the channel's way back. A held lock is no error: the attempt reports it as its end.
func (s *System) start(ctx context.Context, r record.Record, env []string) (*attempt, error) {
	a := &attempt{}
	if r.Channel == record.ChannelArgv {
		return a, s.startArgv(r, env, a)
	}
	lock, err := s.folder().Lock(record.LockName(r.ID))
	if errors.Is(err, record.ErrHeld) {
		a.end(lockHeld)
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	a.lock = lock
	// Whoever had the lock before may have finished, and deleted the record, between our look and our lock.
	if _, err := s.folder().Read(r.ID); err != nil {
		a.end(lockHeld)
		return a, nil
	}
	switch r.Channel {
	case record.ChannelUnload:
		k := kindByID(r.Server)
		if k == nil || k.load == nil {
			return nil, fmt.Errorf("slipway does not know how to load a model in %s", plain(r.Server))
		}
		l := s.lookAt(ctx, baseURL(probeOf(r), r.Port), r.Port, r.PID, true)
		loaded, _ := k.models(l)
		for _, m := range r.Models {
			if sameModels([]record.Model{m}, loaded) {
				continue
			}
			if err := k.load(l, m); err != nil {
				return nil, err
			}
		}
	case record.ChannelApp:
		if _, err := askApp(ctx, r.Socket, "start"); err != nil {
			return nil, err
		}
	default:
		if err := s.startService(ctx, r); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// again runs this program once more, on the same home. cmd.Dir is the root: no folder of the person is kept busy.
func (s *System) again(verb string, args ...string) *exec.Cmd {
	program := s.Program[0]
	kept, ok := s.restorer()
	if ok {
		program = kept
	}
	cmd := exec.Command(program)
	cmd.Args = s.againArgs(program, verb, args...)
	if !ok && program == kept {
		cmd.Err = fmt.Errorf("%s was changed since slipway put it there, so it is not run", kept)
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func (s *System) againArgs(program, verb string, args ...string) []string {
	return slices.Concat([]string{program}, s.Program[1:], []string{verb, "--home", s.Home}, args)
}

// logFor is where the output of a restored server goes, and its name for a person. A slipway-server has a log in its
// own home.
func (s *System) logFor(r record.Record) (*os.File, string, error) {
	if r.OwnHome == "" {
		return s.folder().Log(r.ID)
	}
	root, err := os.OpenRoot(r.OwnHome)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	log, err := launch.OpenLog(root)
	return log, filepath.Join(r.OwnHome, filepath.FromSlash(launch.LogPath)), err
}

// startArgv runs `slipway restore-exec ID` in a session of its own; that program becomes the neighbour. The pipe
// closes silently on success and carries the reason on failure.
func (s *System) startArgv(r record.Record, env []string, a *attempt) error {
	log, name, err := s.logFor(r)
	if err != nil {
		return err
	}
	defer log.Close()
	if r.OwnHome == "" {
		a.log = name
	}
	said, say, err := os.Pipe()
	if err != nil {
		return err
	}
	var flags []string
	if env != nil {
		flags = []string{"--keep-environment"}
	}
	if s.ChangedPrograms {
		flags = append(flags, "--changed-program")
	}
	cmd := s.again("restore-exec", append(flags, r.ID)...)
	if env != nil {
		cmd.Env = env
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{say} // descriptor 3
	if err := cmd.Start(); err != nil {
		said.Close()
		say.Close()
		return err
	}
	say.Close()
	go func() {
		defer said.Close()
		why, _ := io.ReadAll(io.LimitReader(said, 4096))
		err := cmd.Wait()
		if text := strings.TrimSpace(string(why)); text != "" {
			a.end(text)
			return
		}
		state := "it ended"
		if err != nil {
			state = "it ended with " + err.Error()
		}
		a.end(state + " before it answered; its output is in " + name)
	}()
	return nil
}
