package launch

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"slipway/installer/process"
)

// HomeOf is the home whose record names this process, one of this user's, as its server; empty where none does.
func HomeOf(id process.Identity) string {
	home := filepath.Dir(filepath.Dir(filepath.Dir(id.Exe))) // HOME/engines/ID/slipway-server
	root, err := os.OpenRoot(home)
	if err != nil {
		return ""
	}
	defer root.Close()
	if info, err := root.Stat("."); err != nil || info.Mode().Perm()&0o022 != 0 {
		return "" // others could have put a record there
	}
	r, err := readRecord(root)
	if err != nil || !r.Process.SameProcess(id) ||
		filepath.Join(home, filepath.FromSlash(r.Settings.Program)) != id.Exe {
		return ""
	}
	return home
}

// ErrServerLives: a server of the home runs, or is being started.
var ErrServerLives = errors.New("a server of that home runs already")

// Again makes this process the server of a home whose server was stopped: the caller executes the server's program
// next. The home's record names this process, and the lock of the living server is alive, which the program must
// inherit. What else the record holds stays, also where a newer slipway wrote it. Errors: ErrServerLives, *RecordError,
// fs.ErrNotExist.
func Again(root *os.Root, program string) (alive *os.File, err error) {
	alive, free, err := takeAlive(root)
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, ErrServerLives
	}
	if err := nameThis(root, program); err != nil {
		alive.Close()
		return nil, err
	}
	return alive, nil
}

// nameThis writes into the record that this process, which is about to execute program, is the server.
func nameThis(root *os.Root, program string) error {
	if _, err := readRecord(root); err != nil {
		return err
	}
	data, err := root.ReadFile(RecordPath)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	id, err := process.Self()
	if err != nil {
		return err
	}
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	id.Exe, id.ExeInode = program, inode(info)
	for name, value := range map[string]any{"process": id, "started": time.Now().UTC().Truncate(time.Second),
		"attached": false} {
		if fields[name], err = json.Marshal(value); err != nil {
			return err
		}
	}
	return writeRecord(root, fields)
}
