package neighbor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway/installer/process"
	"slipway/test/neighbors/alone"
)

// testTiming is patient where a loaded test machine needs it and quick where only our own waiting counts.
var testTiming = Timing{Request: 3 * time.Second, Drain: 200 * time.Millisecond, Wedged: 400 * time.Millisecond,
	Samples: 3, Span: 240 * time.Millisecond, Exit: 8 * time.Second,
	Respawn: 300 * time.Millisecond, Load: 30 * time.Second, Signal: 1500 * time.Millisecond,
	Poll: 20 * time.Millisecond, Services: 8 * time.Second}

// The test binary is also the program that slipway is for restore-exec and watch-restore, and the launcher to be
// killed: TEST slipway VERB --home HOME ARGS.
func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == "slipway" {
		os.Exit(helper(os.Args[4], os.Args[2], os.Args[5:]))
	}
	leave, err := alone.Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	leave()
	if binaries.folder != "" {
		os.RemoveAll(binaries.folder)
	}
	os.Exit(code)
}

func helper(home, verb string, args []string) int {
	s := testSystem(home)
	s.step = func(step string) { dieAt(home, verb, step) }
	ctx := context.Background()
	switch verb {
	case "restore-exec":
		var env []string
		if slices.Contains(args, "--keep-environment") {
			env = os.Environ()
		}
		s.ChangedPrograms = slices.Contains(args, "--changed-program")
		report := os.NewFile(3, "report")
		if report == nil {
			report = os.Stderr
		}
		s.RestoreExec(args[len(args)-1], env, report)
		return 1
	case "watch-restore":
		if err := s.WatchRestore(ctx, args[0], os.Stdin, os.Stdout); err != nil {
			return 1
		}
		return 0
	case "restore":
		list, err := s.Restore(ctx, false)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		json.NewEncoder(os.Stdout).Encode(list)
		return 0
	case "launch": // stop what listens on the ports, say so, and stay
		var servers []Server
		for _, port := range args {
			n, _ := strconv.Atoi(port)
			found, err := s.At(ctx, n)
			if err != nil || len(found) == 0 {
				fmt.Println("nothing there", err)
				return 1
			}
			servers = append(servers, found...)
		}
		if _, err := s.Stop(ctx, servers, StopOptions{
			PlanDigest: "sha256:test", AcceptLoss: os.Getenv("TEST_ACCEPT_LOSS") != ""}); err != nil {
			fmt.Println("refused:", err)
			return 13
		}
		fmt.Println("stopped")
		time.Sleep(time.Hour)
	}
	return 2
}

// dieAt kills this process with SIGKILL at the step that HOME/kill names as "verb step", once.
func dieAt(home, verb, step string) {
	path := filepath.Join(home, "kill")
	b, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(b)) != verb+" "+step {
		return
	}
	if os.Rename(path, path+".done") != nil {
		return // another process was faster: it dies
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func testSystem(home string) *System {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	s := &System{Home: home, UserHome: filepath.Join(home, "user"), UID: os.Getuid(), Program: []string{
		self, "slipway"}, Timing: testTiming}
	if b, err := os.ReadFile(filepath.Join(home, "launchctl")); err == nil {
		s.Launchctl = string(b)
	}
	return s
}

func newSystem(t *testing.T) *System {
	t.Helper()
	home := filepath.Join(t.TempDir(), "дом slipway")
	if err := os.MkdirAll(filepath.Join(home, "user"), 0o700); err != nil {
		t.Fatal(err)
	}
	return testSystem(home)
}

// binaries are the doubles, built once.
var binaries struct {
	once   sync.Once
	folder string
	err    error
}

func program(t *testing.T, name string) string {
	t.Helper()
	binaries.once.Do(func() {
		if binaries.folder, binaries.err = os.MkdirTemp("", "doubles-"); binaries.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", binaries.folder+"/", "slipway/test/neighbors/...")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			binaries.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if binaries.err != nil {
		t.Fatal(binaries.err)
	}
	return filepath.Join(binaries.folder, name)
}

// double is a running double of a server.
type double struct {
	t       *testing.T
	program string
	folder  string
	port    int
	args    []string
	env     []string
	cwd     string
}

type doubleOption func(*double)

func withArgs(args ...string) doubleOption { return func(d *double) { d.args = args } }
func withEnv(env ...string) doubleOption   { return func(d *double) { d.env = append(d.env, env...) } }
func withCwd(cwd string) doubleOption      { return func(d *double) { d.cwd = cwd } }
func withProgram(p string) doubleOption    { return func(d *double) { d.program = p } }

// verbs are the arguments that follow each program's name.
var verbs = map[string][]string{"mtplx": {"serve"}, "omlx": {"serve"}, "rapid-mlx": {"serve"}, "qmlx": {"serve"},
	"vllm-mlx": {"serve"}, "ollama": {"serve"}, "slipway-server": {"serve"}}

func newDouble(t *testing.T, name string, options ...doubleOption) *double {
	t.Helper()
	d := &double{t: t, program: program(t, name), folder: t.TempDir(), port: freePort(t), args: verbs[name],
		cwd: t.TempDir()}
	d.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.folder, "LANG=C.UTF-8"}
	for _, o := range options {
		o(d)
	}
	t.Cleanup(d.killAll)
	return d
}

func (d *double) argv() []string {
	return append(append([]string{d.program}, d.args...), "--port", strconv.Itoa(d.port), "--double", d.folder)
}

// start runs the double as an orphan, as a server is whose terminal was closed, and waits until it listens.
func (d *double) start() *double {
	d.t.Helper()
	d.launch()
	d.listens()
	return d
}

func (d *double) launch() {
	d.t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", `"$@" </dev/null >/dev/null 2>&1 &`, "sh"}, d.argv()...)...)
	cmd.Env, cmd.Dir = d.env, d.cwd
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
}

func (d *double) listens() {
	d.t.Helper()
	eventually(d.t, "the double listens", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.port))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	d.quiet()
}

// quiet waits until the connection of the question before has left the table.
func (d *double) quiet() {
	d.t.Helper()
	eventually(d.t, "no connection is left", func() bool {
		list, err := process.Connections(context.Background(), d.port)
		return err == nil && len(list) == 0
	})
}

func (d *double) set(file, value string) *double {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.folder, file), []byte(value), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return d
}

func (d *double) mode(mode string) *double { return d.set("mode", mode) }

func (d *double) log() []string {
	b, _ := os.ReadFile(filepath.Join(d.folder, "log"))
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func (d *double) count(word string) int {
	n := 0
	for _, line := range d.log() {
		if strings.HasPrefix(line, word+" ") {
			n++
		}
	}
	return n
}

// running are the pids of this double that are alive, found by the folder in their arguments.
func (d *double) running() []int {
	pids, err := process.PIDs()
	if err != nil {
		d.t.Fatal(err)
	}
	var list []int
	for _, pid := range pids {
		p, err := process.Look(pid)
		if err != nil || pid == os.Getpid() || len(p.Argv) == 0 || p.Argv[0] == "sh" || p.Argv[0] == "/bin/sh" {
			continue
		}
		for i, arg := range p.Argv {
			if i > 0 && arg == d.folder && p.Argv[i-1] == "--double" {
				list = append(list, pid)
			}
		}
	}
	return list
}

func (d *double) killAll() {
	for range 3 {
		for _, pid := range d.running() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// seen is what the running double was started with.
func (d *double) seen() (seen struct {
	PID  int
	Argv []string
	Env  []string
	Cwd  string
}) {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.folder, "seen.json"))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := json.Unmarshal(b, &seen); err != nil {
		d.t.Fatal(err)
	}
	return seen
}

// found identifies the double through s; there has to be exactly one server on its port.
func (d *double) found(s *System) Server {
	d.t.Helper()
	list, err := s.At(context.Background(), d.port)
	if err != nil || len(list) != 1 {
		d.t.Fatalf("on port %d: %+v, %v", d.port, list, err)
	}
	return list[0]
}

func (d *double) answers(path string) bool {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", d.port, path))
	if err != nil {
		return false
	}
	defer r.Body.Close()
	io.Copy(io.Discard, r.Body)
	return r.StatusCode == 200
}

var (
	portsMu sync.Mutex
	given   = map[int]bool{}
)

// freePort never gives a port twice in this process, and none that a kind has by default.
func freePort(t *testing.T) int {
	t.Helper()
	portsMu.Lock()
	defer portsMu.Unlock()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if !given[port] {
			given[port] = true
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// launcher is a slipway that stops neighbours and stays, in a process that can be killed.
type launcher struct {
	cmd  *exec.Cmd
	said chan string // its first line; closed without one where it was killed before
}

func launcherOf(t *testing.T, s *System, ports ...int) *launcher {
	t.Helper()
	args := []string{"slipway", "launch", "--home", s.Home}
	for _, p := range ports {
		args = append(args, strconv.Itoa(p))
	}
	cmd := exec.Command(s.Program[0], args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &launcher{cmd: cmd, said: make(chan string, 1)}
	go func() {
		if line, err := bufio.NewReader(out).ReadString('\n'); err == nil {
			l.said <- strings.TrimSpace(line)
		}
		close(l.said)
	}()
	t.Cleanup(l.kill)
	return l
}

func (l *launcher) kill() {
	l.cmd.Process.Kill()
	l.cmd.Wait()
}

func itoa(n int) string { return strconv.Itoa(n) }

func mustConnections(t *testing.T, port int) []process.Connection {
	t.Helper()
	list, err := process.Connections(context.Background(), port)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
