package neighbor

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"howett.net/plist"

	"slipway/installer/neighbor/record"
)

// onlyRecordLeft stops the double and loses launcher and watcher: only the record is left.
func (d *double) onlyRecordLeft(s *System) record.Record {
	d.t.Helper()
	l := d.stoppedBy(s)
	killWatchers(d.t, s)
	l.kill()
	records, damaged := s.folder().List()
	if len(records) != 1 || len(damaged) > 0 {
		d.t.Fatalf("records %+v, %v", records, damaged)
	}
	return records[0]
}

func one(t *testing.T, s *System) Outcome {
	t.Helper()
	list, err := s.Restore(ctx, false)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

func TestConcurrentRestoresStartOneServer(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").set("load_ms", "300").start()
	r := d.onlyRecordLeft(s)
	var all sync.WaitGroup
	results := make([]Outcome, 6)
	for i := range results {
		all.Go(func() {
			other := testSystem(s.Home)
			results[i] = other.restoreOne(ctx, r, nil)
		})
	}
	all.Wait()
	for _, o := range results {
		if o.Result != Restored {
			t.Errorf("%+v", o)
		}
	}
	if d.count("start") != 2 || d.count("refused") != 0 || len(d.running()) != 1 {
		t.Errorf("log %q, running %v", d.log(), d.running())
	}
}

func TestTakenPortIsReportedAndLeftToItsOwner(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	d.onlyRecordLeft(s)
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", itoa(d.port)))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(io.Discard, io.LimitReader(c, 1)); c.Close() }()
		}
	}()
	if o := one(t, s); o.Result != PortTaken || !strings.Contains(o.Sentence, itoa(os.Getpid())) {
		t.Errorf("%+v", o)
	}
	if d.count("start") != 1 {
		t.Errorf("log %q", d.log())
	}
	l.Close()
	if o := one(t, s); o.Result != Restored || len(d.running()) != 1 {
		t.Errorf("after the port was free: %+v", o)
	}
}

func TestOwnRestartOfTheUserCountsAsRestored(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	d.onlyRecordLeft(s)
	d.start()
	if o := one(t, s); o.Result != Restored {
		t.Errorf("%+v", o)
	}
	// And one that still loads its model, so that it listens nowhere yet.
	d.quiet()
	d.onlyRecordLeft(s)
	d.set("load_ms", "600").launch()
	eventually(t, "the user's process is there", func() bool { return len(d.running()) == 1 })
	if o := one(t, s); o.Result != Restored {
		t.Errorf("while loading: %+v", o)
	}
	if d.count("start") != 3 || d.count("refused") != 0 || len(d.running()) != 1 {
		t.Errorf("log %q, running %v", d.log(), d.running())
	}
}

func TestUsersRestartWithAnotherModelKeepsTheRecord(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	d.onlyRecordLeft(s)
	d.args = []string{"serve", "--model", "another"}
	d.start()
	if o := one(t, s); o.Result != PortTaken || !strings.Contains(o.Sentence, "another model") {
		t.Errorf("%+v", o)
	}
}

func TestMissingWorkingFolderFailsOnlyWhereItIsNeeded(t *testing.T) {
	for _, row := range []struct {
		name, program string
		args          []string
		want          Result
	}{
		{"not needed", "mtplx", []string{"serve"}, Restored},
		{"an argument is a file in it", "mtplx", []string{"serve", "--config", "mtplx.toml"}, Failed},
		{"the kind reads from it", "ds4-server", nil, Failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSystem(t)
			cwd := filepath.Join(t.TempDir(), "папка")
			os.Mkdir(cwd, 0o700)
			os.WriteFile(filepath.Join(cwd, "mtplx.toml"), nil, 0o600)
			d := newDouble(t, row.program, withCwd(cwd), withArgs(row.args...)).start()
			d.onlyRecordLeft(s)
			os.RemoveAll(cwd)
			o := one(t, s)
			if o.Result != row.want {
				t.Errorf("%+v", o)
			}
			if row.want != Failed {
				return
			}
			if !strings.Contains(o.Sentence, "working folder is gone") {
				t.Errorf("sentence %q", o.Sentence)
			}
			if list, err := s.Pending(); err != nil || len(list) != 1 || list[0].Result != Failed {
				t.Errorf("pending %+v, %v", list, err)
			}
			os.Mkdir(cwd, 0o700)
			if o := one(t, s); o.Result != Restored {
				t.Errorf("with the folder back: %+v", o)
			}
		})
	}
}

func TestMissingProgramKeepsTheRecordUntilItIsThere(t *testing.T) {
	s := newSystem(t)
	copied := filepath.Join(t.TempDir(), "mtplx")
	b, err := os.ReadFile(program(t, "mtplx"))
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(copied, b, 0o700)
	d := newDouble(t, "mtplx", withProgram(copied)).start()
	d.onlyRecordLeft(s)
	os.Remove(copied)
	if o := one(t, s); o.Result != Failed || !strings.Contains(o.Sentence, "cannot be executed") {
		t.Errorf("%+v", o)
	}
	os.WriteFile(copied, b, 0o700)
	if o := one(t, s); o.Result != Restored {
		t.Errorf("with the program back: %+v", o)
	}
}

func TestNeighbourThatEndsWhileStartingIsReportedWithItsLog(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	d.onlyRecordLeft(s)
	os.RemoveAll(d.folder) // the double cannot log, and its load time is gone; it still starts
	os.WriteFile(d.folder, nil, 0o600)
	r := must(s.folder().List())[0]
	r.Argv = append(r.Argv[:1:1], "serve") // without its arguments it ends at once
	if err := s.folder().Write(r); err != nil {
		t.Fatal(err)
	}
	o := one(t, s)
	if o.Result != Failed || !strings.Contains(o.Sentence, "exit status 2") || o.Log == "" {
		t.Errorf("%+v", o)
	}
	if b, err := os.ReadFile(filepath.Join(s.Home, o.Log)); err != nil || !strings.Contains(string(b), "--double") {
		t.Errorf("its log: %q, %v", b, err)
	}
}

func TestDamagedAndForeignRecordsAreNeverRun(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	r := d.onlyRecordLeft(s)
	path := s.folder().Path(r.ID + ".json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(){
		"cut":   func() { os.WriteFile(path, good[:len(good)/2], 0o600) },
		"empty": func() { os.WriteFile(path, nil, 0o600) },
		"another schema": func() {
			os.WriteFile(path, []byte(strings.Replace(string(good), `"schema": 1`, `"schema": 2`, 1)), 0o600)
		},
		"others may write": func() { os.WriteFile(path, good, 0o600); os.Chmod(path, 0o666) },
		"relative program": func() {
			os.WriteFile(path, []byte(strings.Replace(string(good), `"program": "/`, `"program": "`, 1)), 0o600)
		},
		"another record's": func() {
			os.WriteFile(path, []byte(strings.ReplaceAll(string(good), r.ID, "other-1")),
				0o600)
		},
		"a secret in it": func() {
			os.WriteFile(path, []byte(strings.Replace(string(good), `"LANG"`, `"X_TOKEN"`, 1)), 0o600)
		},
		"a link to a record": func() { os.Rename(path, path+".moved"); os.Symlink(path+".moved", path) },
	} {
		t.Run(name, func(t *testing.T) {
			os.Remove(path)
			os.Remove(path + ".moved")
			os.WriteFile(path, good, 0o600)
			os.Chmod(path, 0o600)
			spoil()
			if o := one(t, s); o.Result != Failed || d.count("start") != 1 {
				t.Errorf("%+v, log %q", o, d.log())
			}
			if _, err := os.Lstat(path); err != nil {
				t.Error("the file was removed")
			}
		})
	}
	os.Remove(path)
	os.WriteFile(path, good, 0o600)
	os.Chmod(path, 0o600)
	if o := one(t, s); o.Result != Restored {
		t.Errorf("the right one: %+v", o)
	}
}

func TestRecordOfAnEarlierBootIsRestoredAndNothingSignalled(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	r := d.onlyRecordLeft(s)
	r.BootID, r.State, r.PID = "00000000-0000-0000-0000-000000000000", record.StateSignalled, os.Getpid()
	if err := s.folder().Write(r); err != nil {
		t.Fatal(err)
	}
	if o := one(t, s); o.Result != Restored || d.count("start") != 2 {
		t.Errorf("%+v", o)
	}
}

func TestDryRestoreChangesNothing(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	d.onlyRecordLeft(s)
	before := files(t, s.Home)
	list, err := s.Restore(ctx, true)
	if err != nil || len(list) != 1 || list[0].Result != Would {
		t.Errorf("%+v, %v", list, err)
	}
	after := files(t, s.Home)
	if len(before) != len(after) || len(d.running()) != 0 {
		t.Errorf("before %d files, after %d", len(before), len(after))
	}
	for path, text := range before {
		if after[path] != text {
			t.Errorf("%s changed", path)
		}
	}
	nowhere := testSystem(filepath.Join(s.Home, "none"))
	if list, err := nowhere.Restore(ctx, true); err != nil || len(list) != 0 {
		t.Errorf("without a home: %+v, %v", list, err)
	}
	if _, err := os.Stat(nowhere.Home); err == nil {
		t.Error("a home was made")
	}
}

func TestOurServerKeepsNeighboursStoppedAfterItsLauncher(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	l := d.stoppedBy(s)
	ours := newDouble(t, "slipway-server").start() // the server that the launcher started
	id := ours.found(s).Identity()
	if err := s.Hold(id); err != nil {
		t.Fatal(err)
	}
	l.kill()
	time.Sleep(300 * time.Millisecond) // long enough for a watcher that forgets the second holder
	if d.count("start") != 1 {
		t.Fatal("restored while our server runs")
	}
	syscall.Kill(id.PID, syscall.SIGKILL)
	eventually(t, "it answers again", func() bool { return d.answers("/health") })
}

func TestRebootAgentIsAPlistForThisHomeOnly(t *testing.T) {
	s := newSystem(t)
	s.AgentFolder = filepath.Join(t.TempDir(), "Library", "LaunchAgents")
	s.Home, s.Program = filepath.Join(t.TempDir(), "я <home> & co"),
		[]string{filepath.Join(t.TempDir(), "A & B slipway")}
	if err := os.Mkdir(s.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Program[0], []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if s.WriteRebootAgent() == nil {
		t.Error("the file was written without a program to start")
	}
	if err := s.installRestorer(); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteRebootAgent(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(s.RebootAgentPath())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if _, err := plist.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	args := got["ProgramArguments"].([]any)
	if len(args) != 4 || args[0] != s.folder().Path(record.Restorer) || args[1] != "restore" || args[3] != s.Home ||
		got["RunAtLoad"] != true || got["KeepAlive"] != false {
		t.Errorf("%+v", got)
	}
	if err := s.WriteRebootAgent(); err != nil {
		t.Errorf("once more: %v", err)
	}
	other := newSystem(t)
	other.AgentFolder = s.AgentFolder
	if other.RebootAgentPath() == s.RebootAgentPath() {
		t.Error("two homes share one file")
	}
	if err := s.RemoveRebootAgent(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.RebootAgentPath()); err == nil {
		t.Error("it is still there")
	}
	os.WriteFile(s.RebootAgentPath(), []byte("another program's"), 0o600)
	if s.WriteRebootAgent() == nil || s.RemoveRebootAgent() == nil {
		t.Error("a foreign file was replaced or removed")
	}
}

func TestRebootAgentGoesWithTheLastRecord(t *testing.T) {
	s := newSystem(t)
	s.AgentFolder = t.TempDir()
	d := newDouble(t, "mtplx").start()
	d.onlyRecordLeft(s)
	if err := s.WriteRebootAgent(); err != nil {
		t.Fatal(err)
	}
	if o := one(t, s); o.Result != Restored {
		t.Errorf("%+v", o)
	}
	if _, err := os.Stat(s.RebootAgentPath()); err == nil {
		t.Error("the file is still there")
	}
}

func TestRestorerIsCopiedFromAnotherVolumeAndOutlivesItsSource(t *testing.T) {
	home, err := os.MkdirTemp("/dev/shm", "slipway-test")
	if err != nil {
		t.Skip("no second volume at /dev/shm: only the hard link was tried")
	}
	defer os.RemoveAll(home)
	s := testSystem(home)
	source := filepath.Join(t.TempDir(), "slipway")
	if err := os.WriteFile(source, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Program = []string{source}
	if err := s.installRestorer(); err != nil {
		t.Fatal(err)
	}
	os.Remove(source)
	cmd := s.again("restore")
	if err := cmd.Run(); err != nil || cmd.Path != s.folder().Path(record.Restorer) {
		t.Errorf("%s: %v", cmd.Path, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(cmd.Path)); len(entries) != 1 {
		t.Errorf("other files in its folder: %v", entries)
	}
}
