package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/installer/process"
)

func openRoot(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"run", "logs"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}

func TestParseLsof(t *testing.T) {
	for _, row := range []struct {
		name, out, words string
		pid              int
	}{
		{"one", "p812\ncpython3.12\nLanna\nf7\nn127.0.0.1:8000\n", `"python3.12" (pid 812, user "anna")`, 812},
		{"two: the first", "p812\ncA\nLx\np9\ncB\n", `"A" (pid 812, user "x")`, 812},
		{"escapes in a name", "p1\nc\x1b[31mred\n", `"\x1b[31mred" (pid 1)`, 1},
		{"nothing", "", "", 0},
		{"no number", "pabc\ncA\n", "", 0},
	} {
		pid, words := parseLsof(row.out)
		if pid != row.pid || words != row.words {
			t.Errorf("%s: %d %q, want %d %q", row.name, pid, words, row.pid, row.words)
		}
	}
}

func TestLookPortNamesTheOwnerOnEveryAddress(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"} {
		t.Run(address, func(t *testing.T) {
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Skipf("this machine has no %s: %v", address, err)
			}
			defer l.Close()
			port := l.Addr().(*net.TCPAddr).Port
			use := LookPort(t.Context(), port)
			if !use.Taken || use.PID != os.Getpid() || !strings.Contains(use.Owner, "launch") {
				t.Fatalf("%+v", use)
			}
			l.Close()
			if use := LookPort(t.Context(), port); use.Taken {
				t.Fatalf("after it was closed: %+v", use)
			}
		})
	}
}

// What closed connections leave (TIME_WAIT) must not count as taken: down and up follow each other at once.
func TestLookPortIsFreeRightAfterAServerClosedItsConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	for range 4 {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		server.Close() // the server's side closes first and keeps the port in TIME_WAIT
		client.Close()
	}
	l.Close()
	if use := LookPort(t.Context(), port); use.Taken {
		t.Fatalf("%+v", use)
	}
}

func TestRotateLogKeepsTheWriterAndThreeOldLogs(t *testing.T) {
	root, dir := openRoot(t)
	log, err := OpenLog(root)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for n := 1; n <= 6; n++ {
		fmt.Fprintf(log, "round %d\n", n)
		if err := RotateLog(root, 4); err != nil {
			t.Fatal(err)
		}
	}
	log.WriteString("now\n") // through the file that was opened before all rotations
	for name, want := range map[string]string{"server.log": "now\n", "server.log.1": "round 6\n",
		"server.log.2": "round 5\n", "server.log.3": "round 4\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, "logs", name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "logs", "server.log.4")); err == nil {
		t.Error("a fourth old log is kept")
	}
}

func TestLastLinesOfALargeLogWithoutEscapes(t *testing.T) {
	root, dir := openRoot(t)
	if lines := LastLines(root, 0, 3); lines != nil {
		t.Fatalf("no log: %q", lines)
	}
	text := strings.Repeat("filler\n", 50_000) + "\x1b[31mred\x1b[0m\nlast\tline\n"
	if err := os.WriteFile(filepath.Join(dir, LogPath), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := LastLines(root, 0, 2)
	if len(got) != 2 || strings.ContainsRune(got[0], 0x1b) || got[1] != "last line" {
		t.Fatalf("%q", got)
	}
}

// The cause of a fault comes before hundreds of lines of stacks.
func TestCauseOfAFaultIsAmongTheLinesOfACrash(t *testing.T) {
	root, dir := openRoot(t)
	text := strings.Repeat("filler\n", 50) + "fatal error: out of memory\n" +
		strings.Repeat("goroutine 1 [running]:\n", 200)
	if err := os.WriteFile(filepath.Join(dir, LogPath), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := crashLines(root, 0, 3); len(got) != 3 || got[0] != "fatal error: out of memory" {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, LogPath), []byte("one\ntwo\nthe weights are damaged\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if got := crashLines(root, 0, 2); len(got) != 2 || got[1] != "the weights are damaged" {
		t.Errorf("%q", got)
	}
}

// record notes a process as our server.
func noteProcess(t *testing.T, root *os.Root, id process.Identity) {
	t.Helper()
	if err := writeRecord(root, Record{LaunchID: "x", Process: id, Started: time.Unix(1, 0).UTC(),
		Settings: Settings{Port: 1}}); err != nil {
		t.Fatal(err)
	}
}

func startSleeper(t *testing.T, script string) process.Identity {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	ready, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	ready.Read(make([]byte, 1))
	id, err := process.Observe(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A record from before a reboot, or whose pid was given to another program since, must not lead to a signal.
func TestStopNeverSignalsAPidThatBelongsToAnotherProcess(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*process.Identity)
	}{
		{"started at another time", func(id *process.Identity) { id.StartUS-- }},
		{"another boot", func(id *process.Identity) { id.BootID = "00000000-0000-0000-0000-000000000000" }},
		{"another program", func(id *process.Identity) { id.Exe = "/somewhere/slipway-server" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			root, dir := openRoot(t)
			id := startSleeper(t, "echo; while :; do sleep 0.05; done")
			stored := id
			row.change(&stored)
			noteProcess(t, root, stored)
			stopped, err := Stop(t.Context(), root, dir)
			if err != nil || stopped.WasRunning {
				t.Fatalf("%+v %v", stopped, err)
			}
			if running, err := id.Running(); err != nil || !running {
				t.Fatalf("the other process was hit: %v %v", running, err)
			}
			if _, err := readRecord(root); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("the stale record stays: %v", err)
			}
		})
	}
}

func TestStopOfARunningServer(t *testing.T) {
	root, dir := openRoot(t)
	id := startSleeper(t, "trap 'exit 0' TERM; echo; while :; do sleep 0.05; done")
	noteProcess(t, root, id)
	stopped, err := Stop(t.Context(), root, dir)
	if err != nil || !stopped.WasRunning || stopped.Killed || stopped.PID != id.PID {
		t.Fatalf("%+v %v", stopped, err)
	}
	again, err := Stop(t.Context(), root, dir)
	if err != nil || again.WasRunning {
		t.Fatalf("%+v %v", again, err)
	}
}

// Ours and only ours may be killed, and only after it was asked and given its time.
func TestStopOfAServerThatIgnoresItsSignal(t *testing.T) {
	root, dir := openRoot(t)
	id := startSleeper(t, "trap '' TERM; echo; while :; do sleep 0.05; done")
	noteProcess(t, root, id)
	stopped, err := stopWithin(t.Context(), root, dir, 200*time.Millisecond)
	if err != nil || !stopped.Killed {
		t.Fatalf("%+v %v", stopped, err)
	}
	if running, err := id.Running(); err != nil || running {
		t.Fatalf("it runs on: %v", err)
	}
}

func TestServerThatCannotHonourThePlanIsRefused(t *testing.T) {
	program := filepath.Join(t.TempDir(), "server")
	script := `#!/bin/sh
echo '{"schema_version":1,"recommended_max_working_set":1000,"capabilities":{"kv_formats":["f32","f16","q8"],"kv_formats_of":{"cpu":["f32"],"metal":["f16","q8"]},"prefill_policies":["exact"],"drafts":["none"],"devices":["cpu","metal"]}}'
`
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	good := Settings{KVFormat: "f32", PrefillPolicy: "exact", Draft: "none", Device: "cpu"}
	onMetal := good
	onMetal.KVFormat = "q8"
	for _, device := range []string{"metal", "auto"} { // auto: a small model that was planned for Metal
		onMetal.Device = device
		if err := checkProbe(t.Context(), program, onMetal); err != nil {
			t.Errorf("q8 on %s: %v", device, err)
		}
		if args := strings.Join(arguments(onMetal, "/home", "id"), " "); !strings.Contains(args,
			"--device "+device+" --kv q8 ") {
			t.Errorf("the format is not handed on: %s", args)
		}
	}
	if err := checkProbe(t.Context(), program, good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Settings){
		"KV format":      func(s *Settings) { s.KVFormat = "q8" }, // which the CPU of this server has not
		"prefill policy": func(s *Settings) { s.PrefillPolicy = "sink_window" },
		"draft":          func(s *Settings) { s.Draft = "mtp" },
		"device":         func(s *Settings) { s.Device = "tpu" },
		"Metal memory":   func(s *Settings) { s.BudgetBytes = 1001 },
	} {
		want := good
		change(&want)
		var unfit *UnfitError
		if err := checkProbe(t.Context(), program, want); !errors.As(err, &unfit) ||
			!strings.Contains(unfit.Why, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var unfit *UnfitError
	if err := checkProbe(t.Context(), "/bin/false", good); !errors.As(err, &unfit) {
		t.Errorf("a server that cannot say: %v", err)
	}
}

func TestServersEnvironmentHoldsNoSecrets(t *testing.T) {
	for _, name := range []string{"HF_TOKEN", "OPENAI_API_KEY", "HTTPS_PROXY", "SLIPWAY_HOME",
		"AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "canary-1234")
	}
	if env := strings.Join(environment(), "\n"); strings.Contains(env, "canary") {
		t.Fatal(env)
	}
}
