package neighbor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/installer/neighbor/record"
	"slipway/installer/process"
)

var ctx = context.Background()

// stop stops through a launcher process that then stays, as slipway's server does.
func (d *double) stoppedBy(s *System) *launcher {
	d.t.Helper()
	l := launcherOf(d.t, s, d.port)
	if said := <-l.said; said != "stopped" {
		d.t.Fatalf("the launcher said %q", said)
	}
	return l
}

func files(t *testing.T, home string) map[string]string {
	t.Helper()
	all := map[string]string{}
	filepath.WalkDir(home, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			b, _ := os.ReadFile(path)
			all[path] = string(b)
		}
		return nil
	})
	return all
}

func TestKilledLauncherLeavesTheNeighbourRestoredAsItWas(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx", withArgs("serve", "--model", "модель с пробелом", "--system", "a \"b\" $c\n"),
		withEnv("MTPLX_DEPTH=1", "EDITOR=vi", "OPENAI_API_KEY=sk-very-secret",
			"HF_ENDPOINT=https://me:pw-very-secret@hub.example")).start()
	t.Setenv("TEST_ACCEPT_LOSS", "1")
	before, server := d.seen(), d.found(s)
	if !server.Stoppable() {
		t.Fatalf("refused: %s", server.Refusal)
	}
	l := d.stoppedBy(s)
	if len(d.running()) != 0 {
		t.Fatal("it still runs")
	}
	for path, text := range files(t, s.Home) {
		if filepath.Base(path) == record.Restorer { // this program, which contains the words below
			continue
		}
		if strings.Contains(text, "very-secret") {
			t.Errorf("%s holds a secret", path)
		}
		if info, _ := os.Stat(path); info != nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others (%v)", path, info.Mode())
		}
	}
	list, err := s.Pending()
	if err != nil || len(list) != 1 || list[0].Result != Held {
		t.Errorf("while the launcher runs: %+v, %v", list, err)
	}
	if list, err = s.Restore(ctx, false); err != nil || len(list) != 1 || list[0].Result != Held ||
		len(d.running()) != 0 {
		t.Errorf("restoring while the launcher runs: %+v, %v", list, err)
	}
	l.kill()
	eventually(t, "it answers again", func() bool { return d.answers("/health") })
	after := d.seen()
	if !slices.Equal(before.Argv, after.Argv) || before.Cwd != after.Cwd {
		t.Errorf("before %q in %s\nafter  %q in %s", before.Argv, before.Cwd, after.Argv, after.Cwd)
	}
	slices.Sort(before.Env)
	slices.Sort(after.Env)
	if !slices.Equal(before.Env, after.Env) { // the watcher kept all of it in memory, secrets too
		t.Errorf("environment before %q\nafter %q", before.Env, after.Env)
	}
	eventually(t, "the record is forgotten", func() bool {
		list, err := s.Pending()
		return err == nil &&
			len(list) == 0
	})
	if d.count("start") != 2 || len(d.running()) != 1 {
		t.Errorf("log %q, running %v", d.log(), d.running())
	}
}

func TestRestoreWithoutAWatcherBringsTheAllowListedEnvironment(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx", withEnv("MTPLX_DEPTH=1", "EDITOR=vi", "OPENAI_API_KEY=sk-very-secret")).start()
	t.Setenv("TEST_ACCEPT_LOSS", "1")
	l := d.stoppedBy(s)
	killWatchers(t, s)
	l.kill()
	list, err := s.Restore(ctx, false)
	if err != nil || len(list) != 1 || list[0].Result != Restored {
		t.Fatalf("%+v, %v", list, err)
	}
	if sentence := list[0].Sentence; !strings.Contains(sentence, "It runs without OPENAI_API_KEY:") ||
		strings.Contains(sentence, "EDITOR") {
		t.Errorf("said %q", sentence)
	}
	env := d.seen().Env
	if !slices.Contains(env, "MTPLX_DEPTH=1") || slices.Contains(env, "EDITOR=vi") ||
		slices.ContainsFunc(env, func(e string) bool { return strings.Contains(e, "secret") }) {
		t.Errorf("environment %q", env)
	}
	if again, err := s.Restore(ctx, false); err != nil || len(again) != 0 {
		t.Errorf("once more: %+v, %v", again, err)
	}
	if found := d.found(s); found.Kind != "mtplx" {
		t.Errorf("found %+v", found)
	}
}

// killWatchers ends the watchers of a home, by the home in their arguments.
func killWatchers(t *testing.T, s *System) {
	t.Helper()
	for _, pid := range helpers(t, s, "watch-restore") {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	eventually(t, "no watcher is left", func() bool { return len(helpers(t, s, "watch-restore")) == 0 })
}

func helpers(t *testing.T, s *System, verb string) []int {
	t.Helper()
	pids, err := process.PIDs()
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, pid := range pids {
		if d, err := process.Look(pid); err == nil && len(d.Argv) > 4 && d.Argv[1] == "slipway" && d.Argv[2] == verb &&
			d.Argv[4] == s.Home {
			list = append(list, pid)
		}
	}
	return list
}

func TestNeighbourThatBecomesBusyAfterTheProofIsLeftAlone(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	s.step = func(step string) {
		if step == "watched" { // the proof is done, the record is written, the signal is next
			d.mode("busy")
		}
	}
	_, err := s.Stop(ctx, []Server{d.found(s)}, StopOptions{})
	if busy := new(NotIdleError); !errors.As(err, &busy) || busy.Idle.State != StateBusy {
		t.Fatalf("error %v", err)
	}
	if d.count("end") != 0 || len(d.running()) != 1 {
		t.Errorf("log %q", d.log())
	}
	if list, _ := s.Pending(); len(list) != 0 {
		t.Errorf("a record is left: %+v", list)
	}
}

func TestPidOfAnotherProgramIsNotSignalled(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	server := d.found(s)
	proofs, err := s.proveAll(ctx, []Server{server})
	if err != nil {
		t.Fatal(err)
	}
	// Between check and signal the process ends, and its pid goes to another program: a bystander.
	bystander := exec.Command("sleep", "1000")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- bystander.Wait() }()
	defer bystander.Process.Kill()
	server.identity.PID, server.PID = bystander.Process.Pid, bystander.Process.Pid
	_, err = s.stopOne(ctx, server, proofs[0], StopOptions{})
	if refused := new(NotIdleError); !errors.As(err, &refused) {
		t.Errorf("error %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("the bystander ended: %v", err)
	default:
	}
	if len(d.running()) != 1 {
		t.Error("the double ended")
	}
}

func TestOneBusyNeighbourKeepsAllRunning(t *testing.T) {
	s := newSystem(t)
	idle, busy := newDouble(t, "mtplx").start(), newDouble(t, "llama-server").start()
	servers := []Server{idle.found(s), busy.found(s)}
	busy.mode("busy")
	_, err := s.Stop(ctx, servers, StopOptions{})
	if refused := new(NotIdleError); !errors.As(err, &refused) || refused.Server.Kind != "llama.cpp" {
		t.Errorf("error %v", err)
	}
	if idle.count("end")+busy.count("end") != 0 {
		t.Errorf("logs %q %q", idle.log(), busy.log())
	}
	// The second turns busy only after the first has been stopped: the first is restored immediately.
	busy.mode("idle")
	s.step = func(step string) {
		if step == "exited" {
			busy.mode("busy")
		}
	}
	if _, err = s.Stop(ctx, servers, StopOptions{}); err == nil {
		t.Fatal("both were stopped")
	}
	if idle.count("start") != 2 || len(idle.running()) != 1 || busy.count("end") != 0 {
		t.Errorf("logs %q %q", idle.log(), busy.log())
	}
}

func TestNeighbourThatIgnoresTheSignalIsNotKilled(t *testing.T) {
	s := newSystem(t)
	s.Timing.Exit = 500 * time.Millisecond
	d := newDouble(t, "mtplx").mode("stubborn").start()
	_, err := s.Stop(ctx, []Server{d.found(s)}, StopOptions{})
	if still := new(StillRunningError); !errors.As(err, &still) {
		t.Fatalf("error %v", err)
	}
	if d.count("ignored") != 1 || len(d.running()) != 1 {
		t.Errorf("log %q", d.log())
	}
	// It ends later after all: then it is started again.
	list, err := s.Pending()
	if err != nil || len(list) != 1 {
		t.Errorf("pending %+v, %v", list, err)
	}
	d.mode("idle")
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(d.running()[0], syscall.SIGTERM)
	s.Release(self)
	eventually(t, "it was started again", func() bool { return d.count("start") == 2 && d.answers("/health") })
}

func must(records []record.Record, _ []error) []record.Record { return records }

func TestAnotherUsersServerIsLeftAlone(t *testing.T) {
	s := newSystem(t)
	s.UID = os.Getuid() + 1
	d := newDouble(t, "mtplx").start()
	server := d.found(s)
	if server.Stoppable() || !strings.Contains(server.Refusal, "another user") {
		t.Errorf("refusal %q", server.Refusal)
	}
}

func TestServerThatCannotBeStartedAgainIsRefused(t *testing.T) {
	s := newSystem(t)
	for _, row := range []struct {
		name, why string
		make      func(t *testing.T) *double
	}{
		{"its program was replaced", "replaced", func(t *testing.T) *double {
			copied := filepath.Join(t.TempDir(), "mtplx")
			b, _ := os.ReadFile(program(t, "mtplx"))
			os.WriteFile(copied, b, 0o700)
			d := newDouble(t, "mtplx", withProgram(copied)).start()
			os.Remove(copied)
			os.WriteFile(copied, []byte("#!/bin/sh\n"), 0o700)
			return d
		}},
		{"its folder is gone and needed", "working folder", func(t *testing.T) *double {
			cwd := filepath.Join(t.TempDir(), "gone")
			os.Mkdir(cwd, 0o700)
			d := newDouble(t, "ds4-server", withCwd(cwd)).start()
			os.Remove(cwd)
			return d
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := row.make(t)
			if server := d.found(s); server.Stoppable() || !strings.Contains(server.Refusal, row.why) {
				t.Errorf("channel %q, refusal %q", server.Channel, server.Refusal)
			}
		})
	}
}

func TestRealLlamaServerIsStoppedAndRestored(t *testing.T) {
	real, err := exec.LookPath("llama-server")
	model := os.Getenv("SLIPWAY_TEST_GGUF")
	if err != nil || model == "" {
		t.Skip("this machine has no llama-server in PATH, or SLIPWAY_TEST_GGUF names no model for it: only its " +
			"double was tested")
	}
	s := newSystem(t)
	port := freePort(t)
	start := exec.Command("/bin/sh", "-c", `"$@" </dev/null >/dev/null 2>&1 &`, "sh", real, "-m", model, "--host",
		"127.0.0.1", "--port", itoa(port))
	start.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := start.Run(); err != nil {
		t.Fatal(err)
	}
	d := &double{t: t, port: port}
	eventually(t, "it is ready", func() bool { return d.answers("/health") })
	server := d.found(s)
	defer func() { syscall.Kill(server.PID, syscall.SIGKILL) }()
	if idle := s.ProveIdle(ctx, server, s.Timing); idle.State != StateIdle || server.Kind != "llama.cpp" {
		t.Fatalf("%s %v, %+v", idle.State, idle.Reasons, server)
	}
	records, err := s.Stop(ctx, []Server{server}, StopOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := s.restoreOne(ctx, records[0], nil)
	if o.Result != Restored {
		t.Errorf("%+v", o)
	}
	server = d.found(s)
}
