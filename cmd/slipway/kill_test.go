package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway/installer/apply"
	"slipway/installer/build"
	"slipway/installer/launch"
	"slipway/installer/process"
)

// rig runs slipway on a machine without Go, with the test double as the trusted prebuilt server, so that a set-up takes
// a fraction of a second and its every step can be killed.
type rig struct {
	t       *testing.T
	dir     string
	slip    string // slipway, with slipway-server beside it
	home    string
	port    int
	monitor int
	digest  string
	ports   string // of a request without ports
}

func newRig(t *testing.T, buildFlags ...string) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // macOS keeps temporary folders behind a link
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, port: freePort(t), monitor: freePort(t)}
	r.ports = fmt.Sprint(freePort(t), " ", freePort(t))
	r.home = filepath.Join(r.dir, "home")
	found, err := exec.LookPath("slipway")
	if err != nil {
		t.Fatal(err)
	}
	r.slip = filepath.Join(r.dir, "bin", "slipway")
	if err := os.Mkdir(filepath.Dir(r.slip), 0o755); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, found, r.slip)
	double, err := builtDouble(buildFlags)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "bin", "slipway-server"), double, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	sum, _, err := build.HashFile(filepath.Join(r.dir, "bin", "slipway-server"))
	if err != nil {
		t.Fatal(err)
	}
	r.digest = string(sum)
	t.Cleanup(func() { killServers(r.dir) })
	return r
}

// doubles are the servers that were built, by their flags: each is built once for all rigs.
var doubles sync.Map

func builtDouble(flags []string) ([]byte, error) {
	build := sync.OnceValues(func() ([]byte, error) {
		folder, err := os.MkdirTemp("", "slipway-double")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(folder)
		program := filepath.Join(folder, "slipway-server")
		arguments := append([]string{"build", "-C", "testdata/source", "-o", program}, flags...)
		out, err := exec.Command("go", append(arguments, "./cmd/slipway-server")...).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		return os.ReadFile(program)
	})
	once, _ := doubles.LoadOrStore(strings.Join(flags, " "), build)
	return once.(func() ([]byte, error))()
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// command is slipway with these arguments in the rig's environment.
func (r *rig) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(r.slip, args...)
	cmd.Dir = r.dir
	cmd.Env = append([]string{"HOME=" + filepath.Join(r.dir, "user"), "PATH=" + filepath.Dir(r.slip),
		"SLIPWAY_HOME=" + r.home, "TERM=xterm",
		"TEST_PORTS=" + r.ports, "TEST_BARE_MACHINE=1", "TEST_PREBUILT_DIGEST=" + r.digest}, env...)
	return cmd
}

func (r *rig) setupArgs(more ...string) []string {
	return append([]string{"setup", "--port", fmt.Sprint(r.port), "--monitor-port", fmt.Sprint(r.monitor)}, more...)
}

// run runs to the end and returns exit code (-1: killed by a signal), standard output and standard error.
func (r *rig) run(env []string, args ...string) (int, string, string) {
	r.t.Helper()
	cmd := r.command(env, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// tree is what must be the same whatever happened on the way.
func (r *rig) tree() string {
	r.t.Helper()
	var all string
	for _, dir := range []string{"models", "engines", "state/receipts"} {
		text, err := maskedTree(filepath.Join(r.home, dir))
		if err != nil {
			r.t.Fatal(err)
		}
		all += text
	}
	return all
}

// clean takes the home away, server first.
func (r *rig) clean() {
	r.t.Helper()
	if code, _, errOut := r.run(nil, "uninstall", "--yes"); code != 0 && code != exitNotReady {
		r.t.Fatalf("uninstall: %d\n%s", code, errOut)
	}
	if left, _ := filepath.Glob(r.home + "*"); len(left) > 0 {
		r.t.Fatalf("left after uninstall: %v", left)
	}
}

// servers counts the living servers that were started from this home.
func (r *rig) servers() int {
	var programs []string // with their first argument: a probe is no server
	if runtime.GOOS == "linux" {
		exes, _ := filepath.Glob("/proc/[0-9]*/exe")
		for _, exe := range exes {
			target, err := os.Readlink(exe)
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(exe), "cmdline"))
			if arguments := strings.Split(string(line), "\x00"); err == nil && len(arguments) > 1 {
				programs = append(programs, target+" "+arguments[1])
			}
		}
	} else if out, err := exec.Command("ps", "-axo", "command=").Output(); err == nil {
		programs = strings.Split(string(out), "\n")
	}
	n := 0
	for _, program := range programs {
		if strings.HasPrefix(program, r.home+"/") && strings.Contains(program, "slipway-server serve") {
			n++
		}
	}
	return n
}

// A launcher that was killed between starting the server and noting its pid: the server holds its lock, says its launch
// id, and is found, used and stopped all the same.
func TestServerWhosePidWasNeverNotedIsFoundByItsLock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	forget := func() {
		file := filepath.Join(r.home, launch.RecordPath)
		var record launch.Record
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &record)
		}
		if err != nil {
			t.Fatal(err)
		}
		record.Process = process.Identity{}
		if data, err = json.Marshal(record); err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	forget()
	if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 || r.servers() != 1 {
		t.Fatalf("set-up again: %d, %d servers\n%s", code, r.servers(), errOut)
	}
	forget()
	if code, out, errOut := r.run(nil, "down"); code != 0 || r.servers() != 0 {
		t.Fatalf("down: %d, %d servers\n%s%s", code, r.servers(), out, errOut)
	}
}

func (r *rig) undisturbed() string {
	r.t.Helper()
	if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
		r.t.Fatalf("undisturbed: %d\n%s", code, errOut)
	}
	want := r.tree()
	r.clean()
	return want
}

// A run is killed at each write in one of three ways, and in all three in make soak.
func TestSetupKilledAtEveryJournalWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	want := r.undisturbed()
	points, apart, least := 0, 3, 12
	if os.Getenv("SLIPWAY_SOAK") != "" {
		apart, least = 1, 36
	}
	for way, when := range []string{"before", "torn", "after"} {
		for n := 1 + way%apart; ; n += apart {
			env := []string{fmt.Sprintf("%s=%d:%s", apply.KillVariable, n, when)}
			code, _, errOut := r.run(env, r.setupArgs("--yes")...)
			if code == 0 {
				if n < 12 {
					t.Fatalf("only %d journal writes", n-1)
				}
				r.clean()
				break
			}
			if code != -1 {
				t.Fatalf("killed %s write %d: ended with %d\n%s", when, n, code, errOut)
			}
			points++
			// From the first whole record on the plan is open and consent was given: nothing is asked again, even
			// though nobody can be asked here. The last record closes the plan.
			args := r.setupArgs()
			if n == 1 && when != "after" {
				args = r.setupArgs("--yes")
			}
			if code, _, errOut = r.run(nil, args...); code != 0 {
				t.Fatalf("after the kill %s write %d: %d\n%s", when, n, code, errOut)
			}
			if got := r.tree(); got != want {
				t.Fatalf("after the kill %s write %d the tree differs:\n%s\nwant\n%s", when, n, got, want)
			}
			if n := r.servers(); n != 1 {
				t.Fatalf("after the kill %s write %d there are %d servers", when, n, n)
			}
			r.clean()
		}
	}
	if points < least {
		t.Fatalf("only %d kill points", points)
	}
}

// killRounds is how often a run is killed at a random moment: 4, and 40 in make soak.
func killRounds() int {
	if os.Getenv("SLIPWAY_SOAK") != "" {
		return 40
	}
	return 4
}

func TestSetupKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	want := r.undisturbed()
	kills := 0
	random := rand.New(rand.NewSource(1))
	for round := range killRounds() {
		cmd := r.command(nil, r.setupArgs("--yes")...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Intn(150)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		if cmd.ProcessState.ExitCode() == -1 {
			kills++
		}
		if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
			t.Fatalf("round %d: %d\n%s", round, code, errOut)
		}
		if got := r.tree(); got != want {
			t.Fatalf("round %d: the tree differs:\n%s\nwant\n%s", round, got, want)
		}
		if n := r.servers(); n != 1 {
			t.Fatalf("round %d: %d servers", round, n)
		}
		r.clean()
	}
	if kills == 0 {
		t.Fatal("no run was killed")
	}
}

// An uninstall that was killed is finished by the next one; nothing of ours stays, and no server runs on.
func TestUninstallKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	random := rand.New(rand.NewSource(2))
	kills := 0
	for round := range killRounds() {
		if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
			t.Fatalf("round %d: %d\n%s", round, code, errOut)
		}
		cmd := r.command(nil, "uninstall", "--yes")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Intn(40)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		if cmd.ProcessState.ExitCode() == -1 {
			kills++
		}
		r.clean()
		if n := r.servers(); n != 0 {
			t.Fatalf("round %d: %d servers run on", round, n)
		}
	}
	if kills == 0 {
		t.Fatal("no run was killed")
	}
}

// hang starts a set-up whose server does not become ready, and returns when it waits for it.
func (r *rig) hang() (*exec.Cmd, *bytes.Buffer) {
	r.t.Helper()
	if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
		r.t.Fatalf("%d\n%s", code, errOut)
	}
	if err := os.WriteFile(filepath.Join(r.home, "fault"), []byte("slow\n"), 0o644); err != nil {
		r.t.Fatal(err)
	}
	cmd := r.command(nil, r.setupArgs("--yes")...)
	errOut := &bytes.Buffer{}
	cmd.Stderr = errOut
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.until("the server was started", func() bool { return r.servers() == 1 })
	return cmd, errOut
}

func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	for range 1200 {
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatalf("it never came that %s", what)
}

func TestTwoRunsAtOnceOneIsLockedOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, firstOut := r.hang()
	holder := fmt.Sprintf("pid %d", first.Process.Pid)
	for _, args := range [][]string{{"down"}, r.setupArgs("--yes"), {"up"}, {"uninstall", "--yes"}} {
		code, _, errOut := r.run(nil, args...)
		if code != exitLocked || !strings.Contains(errOut, holder) {
			t.Fatalf("%v at the same time: %d, want %d and %q\n%s", args, code, exitLocked, holder, errOut)
		}
	}
	if err := os.Remove(filepath.Join(r.home, "fault")); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Fatalf("first run: %v\n%s", err, firstOut)
	}
	// A holder that died is told from a live one: its record is there, and the lock is free.
	second, _ := r.hangAgain()
	second.Process.Kill()
	second.Wait()
	if err := os.Remove(filepath.Join(r.home, "fault")); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := r.run(nil, r.setupArgs()...); code != 0 || !strings.Contains(errOut,
		fmt.Sprintf("pid %d", second.Process.Pid)) {
		t.Fatalf("after a dead holder: %d\n%s", code, errOut)
	}
}

// Two first runs at the same moment: nobody is hurt, whoever makes the home.
func TestTwoFirstRunsAtTheSameMoment(t *testing.T) {
	r := newRig(t)
	want := r.undisturbed()
	for round := range 5 {
		var commands [2]*exec.Cmd
		var outs [2]bytes.Buffer
		for i := range commands {
			commands[i] = r.command(nil, r.setupArgs("--yes")...)
			commands[i].Stderr = &outs[i]
		}
		for _, cmd := range commands {
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
		}
		done := 0
		for i, cmd := range commands {
			cmd.Wait()
			switch code := cmd.ProcessState.ExitCode(); code {
			case exitOK:
				done++
			case exitLocked:
			default:
				t.Fatalf("round %d: %d\n%s", round, code, outs[i].String())
			}
		}
		if done == 0 || r.servers() != 1 {
			t.Fatalf("round %d: %d done, %d servers\n%s%s", round, done, r.servers(), outs[0].String(),
				outs[1].String())
		}
		if got := r.tree(); got != want {
			t.Fatalf("round %d: the tree differs:\n%s\nwant\n%s\n%s%s", round, got, want, outs[0].String(),
				outs[1].String())
		}
		r.clean()
	}
}

// hangAgain stops the server and hangs once more.
func (r *rig) hangAgain() (*exec.Cmd, *bytes.Buffer) {
	r.t.Helper()
	if code, _, errOut := r.run(nil, "down"); code != 0 {
		r.t.Fatalf("down: %d\n%s", code, errOut)
	}
	return r.hang()
}

func TestSignalStopsCleanlyAndTheSameCommandContinues(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		sig  syscall.Signal
		code int
	}{{"Ctrl-C", syscall.SIGINT, exitInterrupt}, {"SIGTERM", syscall.SIGTERM, exitTerminated},
		{"SIGHUP", syscall.SIGHUP, exitHangup}} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			cmd, errOut := r.hang()
			cmd.Process.Signal(row.sig)
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != row.code {
				t.Fatalf("exit code %d, want %d\n%s", code, row.code, errOut)
			}
			if !strings.Contains(errOut.String(), "\nYour progress is saved. To continue, run:\n  ") ||
				!strings.Contains(errOut.String(), "setup") {
				t.Fatalf("the command that continues is not printed:\n%s", errOut)
			}
			if n := r.servers(); n != 0 {
				t.Fatalf("%d servers are left", n)
			}
			if err := os.Remove(filepath.Join(r.home, "fault")); err != nil {
				t.Fatal(err)
			}
			code, _, again := r.run(nil, r.setupArgs()...) // without --yes: consent was given
			if code != 0 || !strings.Contains(again, "Continuing") {
				t.Fatalf("going on: %d\n%s", code, again)
			}
		})
	}
}

// A set-up that was interrupted anywhere is taken away whole, also what had its final name and was in no receipt yet.
func TestUninstallAfterAnInterruptedSetUpLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := 1; ; n++ {
		env := []string{fmt.Sprintf("%s=%d:before", apply.KillVariable, n)}
		code, _, _ := r.run(env, r.setupArgs("--yes")...)
		uninstall, out, errOut := r.run(nil, "uninstall", "--yes")
		if left, _ := filepath.Glob(r.home + "*"); uninstall != 0 || len(left) > 0 {
			t.Fatalf("after write %d: %d\n%s%s", n, uninstall, out, errOut)
		}
		if code == 0 && n < 10 {
			t.Fatalf("only %d kill points", n)
		}
		if code == 0 {
			return
		}
	}
}
