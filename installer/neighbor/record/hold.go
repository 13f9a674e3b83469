package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"slipway/installer/process"
)

// A holder is a process that needs neighbours to stay stopped: the launcher while it applies, then our server. As long
// as one of them runs nothing is restored; when the last has ended, the watchers restore. A hold is a file named for
// the process, so that adding one and removing another need no common lock.

const holdPrefix = "hold-"

func holdName(id process.Identity) string {
	return fmt.Sprintf("%s%d-%d", holdPrefix, id.PID, id.StartUS)
}

// Hold registers a process. A launcher registers itself before the first signal, and the server that it started before
// it ends itself.
func (f Folder) Hold(id process.Identity) error {
	root, err := f.open(true)
	if err != nil {
		return err
	}
	defer root.Close()
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return replace(root, holdName(id), b)
}

// Release takes a hold back; a missing one is no error.
func (f Folder) Release(id process.Identity) error {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(holdName(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Holders are the running processes that need neighbours to stay stopped: the registered ones, and the server
// of this home, which holds a lock of its own from its first moment to its last. While another slipway keeps that
// server stopped, its holders count. Files of ended ones are removed, unless readOnly. A file that cannot be read
// counts as no holder: at worst a neighbour is restored early.
func (f Folder) Holders(readOnly bool) ([]process.Identity, error) { return f.holders(readOnly, nil) }

// holders is Holders, without the homes seen: two notes that name each other are damage.
func (f Folder) holders(readOnly bool, seen []string) ([]process.Identity, error) {
	if slices.Contains(seen, f.Home) {
		return nil, nil
	}
	alive, err := f.registered(readOnly)
	if err != nil {
		return nil, err
	}
	server, runs := f.server()
	if runs && !slices.Contains(alive, server) {
		alive = append(alive, server)
	}
	if len(alive) == 0 {
		return f.heldByOther(seen)
	}
	return alive, nil
}

// server finds the running server of this home by the lock that it inherited (installer/launch). Its pid is 0 where the
// launcher had no time to write it down.
func (f Folder) server() (process.Identity, bool) {
	home, err := os.OpenRoot(f.Home)
	if err != nil {
		return process.Identity{}, false
	}
	defer home.Close()
	lock, err := home.Open("run/server.lock")
	if err != nil {
		return process.Identity{}, false
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return process.Identity{}, false
	}
	var note struct{ Process process.Identity }
	if b, err := home.ReadFile("run/server.json"); err == nil {
		json.Unmarshal(b, &note)
	}
	return note.Process, true
}

func (f Folder) registered(readOnly bool) ([]process.Identity, error) {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	folder, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var alive []process.Identity
	for _, name := range names {
		if !strings.HasPrefix(name, holdPrefix) {
			continue
		}
		b, err := root.ReadFile(name)
		if err != nil {
			continue
		}
		var id process.Identity
		if err := json.Unmarshal(b, &id); err != nil || holdName(id) != name {
			continue
		}
		running, err := id.Running()
		switch {
		case err != nil:
			return nil, err // neither yes nor no: nothing is restored on a guess
		case running:
			alive = append(alive, id)
		case !readOnly:
			root.Remove(name)
		}
	}
	return alive, nil
}

// Log opens the file that a restored neighbour's output goes to, for appending.
func (f Folder) Log(id string) (*os.File, string, error) {
	home, err := os.OpenRoot(f.Home)
	if err != nil {
		return nil, "", err
	}
	defer home.Close()
	if err := home.MkdirAll("logs", 0o700); err != nil {
		return nil, "", err
	}
	name := "logs/restored-" + id + ".log"
	file, err := home.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return file, name, err
}
