package neighbor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"slipway/installer/neighbor/record"
)

// startWatcher runs `slipway watch-restore ID` in a session of its own and waits until it says that it watches. The
// neighbour's full environment goes to it through a pipe: it stays in memory.
func (s *System) startWatcher(id string, env []string) error {
	cmd := s.again("watch-restore", id)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := json.NewEncoder(in).Encode(env); err != nil {
		return err
	}
	in.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != watching {
		return fmt.Errorf("the watcher did not start (it said %q)", plain(line))
	}
	go cmd.Wait()
	return nil
}

const watching = "watching\n"

// WatchRestore is the watcher of one record. It outlives a killed launcher: as long as a holder runs it waits; when the
// last has ended it restores, and ends. It ends by itself when the record is gone. in carries the environment as JSON.
func (s *System) WatchRestore(ctx context.Context, id string, in io.Reader, out io.Writer) error {
	lock, err := s.folder().Lock(record.WatchName(id))
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := s.ownSum(); err != nil { // now, while the file is what runs
		return err
	}
	var env []string
	if err := json.NewDecoder(io.LimitReader(in, 8<<20)).Decode(&env); err != nil {
		return fmt.Errorf("the neighbour's environment did not arrive: %w", err)
	}
	if _, err := io.WriteString(out, watching); err != nil {
		return err
	}
	if closer, ok := out.(*os.File); ok {
		closer.Close() // the launcher's pipe must not stay open in what is restored
	}
	for {
		r, err := s.folder().Read(id)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if invalid := new(record.InvalidError); errors.As(err, &invalid) {
			return err
		}
		holders, err := s.folder().Holders(false)
		if err == nil && len(holders) == 0 {
			o := s.restoreOne(ctx, r, env)
			if o.Result != Waiting {
				s.say("%s", o.Sentence)
				return nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(4 * s.Timing.Poll) // a second: it may run for weeks
	}
}

// Hold keeps neighbours stopped as long as the given process runs; Release ends that. A launcher that hands over to its
// server calls Hold for the server before it ends itself.
func (s *System) Hold(id ProcessIdentity) error { return s.folder().Hold(id) }

// Release takes a hold back.
func (s *System) Release(id ProcessIdentity) error { return s.folder().Release(id) }
