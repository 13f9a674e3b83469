package neighbor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slipway/installer/launch"
	"slipway/installer/neighbor/record"
	"slipway/installer/process"
)

// homeServer is a double that runs as the server of a home of its own.
func homeServer(t *testing.T) (d *double, home string, root *os.Root) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "other home")
	engine := filepath.Join(home, "engines", "e", "slipway-server")
	for _, folder := range []string{filepath.Dir(engine), filepath.Join(home, "run"), filepath.Join(home, "logs"),
		filepath.Join(home, "state")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(program(t, "slipway-server"))
	if err == nil {
		err = os.WriteFile(engine, program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	d = newDouble(t, "slipway-server", withProgram(engine)).start()
	if root, err = os.OpenRoot(home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	id, err := process.Observe(d.seen().PID)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{"launch_id": "old", "process": id, "started": time.Unix(1, 0),
		"settings": map[string]any{"port": d.port, "program": "engines/e/slipway-server"}, "of_a_newer_version": 7})
	if err == nil {
		err = os.WriteFile(filepath.Join(home, launch.RecordPath), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d, home, root
}

func lookAtHome(t *testing.T, root *os.Root, home string) launch.Status {
	t.Helper()
	status, err := launch.Look(ctx, root, home)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// Its home says who stopped it; it comes back with that home's record, lock and log, and nothing of the other home is
// left in it.
func TestServerOfAnotherHomeComesBackAsTheServerOfThatHome(t *testing.T) {
	s := newSystem(t)
	d, home, root := homeServer(t)
	if found := d.found(s); found.Home != home || len(found.Losses) > 0 {
		t.Fatalf("%+v", found)
	}
	r := d.onlyRecordLeft(s)
	status := lookAtHome(t, root, home)
	if status.State != launch.Stopped || status.StoppedBy == nil || status.StoppedBy.Home != s.Home ||
		status.Restore.ID != r.ID {
		t.Fatalf("%+v", status)
	}
	if o := one(t, s); o.Result != Restored || o.Log != "" {
		t.Fatalf("%+v", o)
	}
	status = lookAtHome(t, root, home)
	if status.State != launch.Running || status.Record.Process.PID != d.seen().PID || !status.Recorded() ||
		time.Since(status.Record.Started) > time.Hour || status.StoppedBy != nil {
		t.Errorf("%+v", status)
	}
	lock, err := root.Stat("run/server.lock")
	if err != nil || !slices.Contains(launch.Users(ctx, filepath.Join(home, "run/server.lock"), lock), d.seen().PID) {
		t.Errorf("it does not hold the lock of its home: %v", err)
	}
	log, err := root.Stat(launch.LogPath)
	if err != nil || !slices.Contains(launch.Users(ctx, filepath.Join(home, launch.LogPath), log), d.seen().PID) {
		t.Errorf("it does not write to the log of its home: %v", err)
	}
	if list, _ := filepath.Glob(filepath.Join(s.Home, "logs", "*")); len(list) > 0 {
		t.Errorf("%v", list)
	}
	if _, err := root.Stat(record.StoppedByPath); err == nil {
		t.Error("the note stays")
	}
	var fields map[string]any
	if data, err := root.ReadFile(launch.RecordPath); err != nil || json.Unmarshal(data, &fields) != nil ||
		fields["of_a_newer_version"] != 7.0 {
		t.Errorf("the record lost what another version wrote: %v, %v", fields, err)
	}
}

// What the home's own slipway has decided since counts: the other slipway starts nothing, says so, and keeps no record.
func TestServerOfAnotherHomeIsLeftToItsOwnSlipway(t *testing.T) {
	for _, row := range []struct {
		name   string
		decide func(t *testing.T, d *double, home string, root *os.Root)
		want   Result
	}{
		{"stopped there", func(t *testing.T, _ *double, home string, root *os.Root) {
			stopped, err := launch.Stop(ctx, root, home)
			if err != nil || stopped.StoppedBy == "" {
				t.Fatalf("%+v, %v", stopped, err)
			}
		}, LeftAlone},
		{"removed", func(t *testing.T, _ *double, home string, _ *os.Root) {
			if err := os.RemoveAll(home); err != nil {
				t.Fatal(err)
			}
		}, LeftAlone},
		{"started there", func(t *testing.T, d *double, home string, root *os.Root) {
			d.start()
			id, err := process.Observe(d.seen().PID)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(launch.Record{LaunchID: "old", Process: id,
				Settings: launch.Settings{Port: d.port, Program: "engines/e/slipway-server"}})
			if err == nil {
				err = root.WriteFile(launch.RecordPath, data, 0o600)
			}
			if err == nil {
				err = record.RemoveStoppedBy(root)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, Restored},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSystem(t)
			d, home, root := homeServer(t)
			r := d.onlyRecordLeft(s)
			row.decide(t, d, home, root)
			before := d.count("start")
			if list, err := s.Pending(); err != nil || len(list) != 1 || list[0].Result != LeftAlone {
				t.Errorf("before: %+v, %v", list, err)
			}
			if o := one(t, s); o.Result != row.want {
				t.Errorf("%+v", o)
			}
			if list, _ := s.folder().List(); len(list) > 0 || d.count("start") != before {
				t.Errorf("records %+v, log %q", list, d.log())
			}
			// Whoever was slower than a watcher says the same.
			if o := s.restoreOne(ctx, r, nil); o.Result != row.want || o.Title == "" {
				t.Errorf("%+v", o)
			}
		})
	}
}

// What was stopped for a server that is itself stopped for another one stays stopped until that one is back, or its own
// slipway gives it up.
func TestNeighborsOfAStoppedServerStayStopped(t *testing.T) {
	s := newSystem(t)
	d, home, root := homeServer(t)
	of := record.Folder{Home: home}
	d.onlyRecordLeft(s)
	if holders, err := of.Holders(true); err != nil || len(holders) != 1 || holders[0].PID != 0 {
		t.Errorf("with the record: %+v, %v", holders, err)
	}
	self, err := process.Self()
	if err == nil {
		err = s.folder().Hold(self)
	}
	if err != nil {
		t.Fatal(err)
	}
	if holders, err := of.Holders(true); err != nil || len(holders) != 1 || holders[0].PID != self.PID {
		t.Errorf("with a holder: %+v, %v", holders, err)
	}
	if _, err := launch.Stop(ctx, root, home); err != nil {
		t.Fatal(err)
	}
	if holders, err := of.Holders(true); err != nil || len(holders) != 0 {
		t.Errorf("given up: %+v, %v", holders, err)
	}
}

// One server is named with all of its ports.
func TestStoppedServerIsNamedWithAllItsPorts(t *testing.T) {
	for _, row := range []struct {
		ports []int
		want  string
	}{{nil, "The server of /a on port 1"}, {[]int{1}, "The server of /a on port 1"},
		{[]int{1, 2, 3}, "The server of /a on ports 1, 2 and 3"}} {
		if got := wordsOf(record.Record{OwnHome: "/a", Port: 1, Ports: row.ports}).name; got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}
