package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// sleeper starts a real process and ends it with the test.
func sleeper(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func observe(t *testing.T, pid int) Identity {
	t.Helper()
	id, err := Observe(pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestIdentityOfAnotherProcessUnderTheSamePIDIsNotRunning(t *testing.T) {
	id := observe(t, sleeper(t, "sleep", "100").Process.Pid)
	if running, err := id.Running(); err != nil || !running {
		t.Fatalf("the real one: running %v, %v", running, err)
	}
	for name, change := range map[string]func(*Identity){
		"started at another time":    func(i *Identity) { i.StartUS++ },
		"of another boot":            func(i *Identity) { i.BootID = "00000000-0000-0000-0000-000000000000" },
		"another executable":         func(i *Identity) { i.Exe = "/bin/other" },
		"replaced file at that path": func(i *Identity) { i.ExeInode++ },
		"another pid":                func(i *Identity) { i.PID = os.Getpid() },
		"no boot":                    func(i *Identity) { i.BootID = "" },
		"nothing":                    func(i *Identity) { *i = Identity{} },
	} {
		other := id
		change(&other)
		if running, err := other.Running(); err != nil || running {
			t.Errorf("%s: running %v, %v", name, running, err)
		}
		if h, err := Open(other); err == nil {
			h.Close()
			t.Errorf("%s: could be opened", name)
		}
	}
}

func TestZombieIsGone(t *testing.T) {
	cmd := sleeper(t, "sleep", "100")
	id := observe(t, cmd.Process.Pid)
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	cmd.Process.Kill() // not waited for: it stays as a zombie
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if running, err := id.Running(); err != nil || running {
		t.Errorf("zombie: running %v, %v", running, err)
	}
	if _, err := Observe(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("observing a zombie: %v", err)
	}
}

func TestSignalNeverReachesASuccessor(t *testing.T) {
	cmd := sleeper(t, "sleep", "100")
	h, err := Open(observe(t, cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	cmd.Process.Kill()
	cmd.Wait() // the number is free now; whoever gets it must not be hit
	if err := h.Signal(syscall.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("signal after the end: %v, want %v", err, ErrGone)
	}
}

func TestSignalReachesTheHeldProcess(t *testing.T) {
	cmd := sleeper(t, "sleep", "100")
	h, err := Open(observe(t, cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("ended by %v", status.Signal())
	}
}

func TestWaitEndsWithItsContextWhileTheProcessLives(t *testing.T) {
	h, err := Open(observe(t, sleeper(t, "sleep", "100").Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := h.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a living process: %v", err)
	}
}

func TestDetailsKeepSpacesEmptyArgumentsAndOtherScripts(t *testing.T) {
	folder := t.TempDir()
	cmd := exec.Command("sh", "-c", "sleep 100; true", "модель 27B", "", "a\nb")
	cmd.Dir = folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "NAME=значение с пробелом", "EMPTY="}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	d, err := Look(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"sh", "-c", "sleep 100; true", "модель 27B", "", "a\nb"}
	if len(d.Argv) != len(want) {
		t.Fatalf("argv %q", d.Argv)
	}
	for i := range want {
		if d.Argv[i] != want[i] {
			t.Errorf("argument %d is %q, want %q", i, d.Argv[i], want[i])
		}
	}
	if len(d.Env) < 3 || d.Env[1] != "NAME=значение с пробелом" || d.Env[2] != "EMPTY=" {
		t.Errorf("environment %q", d.Env)
	}
	if d.Cwd != folder || d.ParentPID != os.Getpid() || d.UID != os.Getuid() {
		t.Errorf("cwd %q, parent %d, uid %d", d.Cwd, d.ParentPID, d.UID)
	}
	if age := time.Since(d.Started); age < -5*time.Second || age > time.Minute {
		t.Errorf("started %v ago", age)
	}
}

func TestExecKeepsTheProcessAndChangesTheIdentity(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read x; exec sleep 100")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	before := observe(t, cmd.Process.Pid)
	in.Write([]byte("go\n"))
	after := before
	for until := time.Now().Add(10 * time.Second); after == before && time.Now().Before(until); time.Sleep(
		5 * time.Millisecond) {
		after = observe(t, cmd.Process.Pid)
	}
	if after == before || !after.SameProcess(before) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if _, err := Open(before); err == nil {
		t.Error("a process that executes another program could be opened under its old identity")
	} else if changed := new(ChangedError); !errors.As(err, &changed) {
		t.Errorf("error is %v", err)
	}
}

func TestCPUTimeGrowsWithWork(t *testing.T) {
	cmd := sleeper(t, "sh", "-c", "while :; do :; done")
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		used, err := CPUTime(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if used >= 100*time.Millisecond {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("a busy loop used %v", used)
		}
	}
}

func TestFootprintIsOfTheProcess(t *testing.T) {
	bytes, err := FootprintBytes(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if bytes < 1<<20 || bytes > 1<<36 {
		t.Errorf("the footprint of a Go test process is %d bytes", bytes)
	}
}
