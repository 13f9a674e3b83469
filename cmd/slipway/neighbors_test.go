package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"slipway/installer/process"
	"slipway/test/neighbors/alone"
)

// The scripts meet the doubles of test/neighbors: programs of their own on real ports.
func TestNeighborScripts(t *testing.T) {
	t.Parallel() // it waits, most of its time
	runNeighborScripts(t, "testdata/neighbors")
}

// These stop servers of our own kind, which other tests have too. So they run in a network of their own, where this
// system has such a thing, and see no others.
func TestScriptsThatStopServersOfOurKind(t *testing.T) {
	const inside = "SLIPWAY_TEST_OWN_NETWORK"
	if os.Getenv(inside) == "" && exec.Command("unshare", "-rn", "true").Run() == nil {
		c := exec.Command("unshare", "-rn", "sh", "-c", `{ ip link set lo up || ifconfig lo up; } 2>/dev/null; exec "$@"`,
			"sh", os.Args[0], "-test.run=^TestScriptsThatStopServersOfOurKind$", "-test.v")
		c.Env = append(os.Environ(), inside+"=1")
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestScriptsThatStopServersOfOurKind/another_home") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	runNeighborScripts(t, "testdata/own_kind")
}

func runNeighborScripts(t *testing.T, folder string) {
	t.Helper()
	leave, err := alone.Enter()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leave)
	doubles := t.TempDir()
	build := exec.Command("go", "build", "-o", doubles+"/", "slipway/test/neighbors/mtplx",
		"slipway/test/neighbors/slipway-server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("testdata/source")
	if err != nil {
		t.Fatal(err)
	}
	caches := goEnv(t, "GOCACHE", "GOMODCACHE", "GOPROXY")
	testscript.RunT(oneByOne{t}, testscript.Params{
		Dir: folder,
		Setup: func(env *testscript.Env) error {
			for name, value := range map[string]string{"GOCACHE": caches[0], "GOMODCACHE": caches[1],
				"GOPROXY":      caches[2],
				"HOME":         filepath.Join(env.WorkDir, "user"),
				"SLIPWAY_HOME": filepath.Join(env.WorkDir, "home"), "SLIPWAY_SOURCE": source, "TERM": "dumb",
				"DOUBLES":    doubles,
				"TEST_PORTS": fmt.Sprint(freePort(t), " ", freePort(t)),
				// Instead of 15 s; installer/neighbor tests how samples are judged.
				"TEST_IDLE_SPAN": "2s",
				"PATH":           env.Getenv("PATH") + string(os.PathListSeparator) + filepath.Dir(goCommand),
				"PORT2":          strconv.Itoa(freePort(t)), "PORT3": strconv.Itoa(freePort(t))} {
				env.Setenv(name, value)
			}
			env.Defer(func() { killServers(env.WorkDir); killBelow(env.WorkDir) })
			return os.Mkdir(filepath.Join(env.WorkDir, "user"), 0o755)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "document": document, "field": field, "double": startDouble, "mode": setMode,
			"answers": answersAt,
			"started": startedTimes, "killserver": killServer, "killwatchers": killWatchers,
		},
	})
}

// oneByOne runs scripts one after another: each looks at all servers of the machine, and a server that is asked by
// another script's slipway has a client, so that it counts as busy.
type oneByOne struct{ *testing.T }

func (oneByOne) Parallel()     {}
func (oneByOne) Verbose() bool { return testing.Verbose() }
func (t oneByOne) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(oneByOne{t}) })
}

// double NAME MODE [VARIABLE=VALUE ...] [--FLAG=VALUE ...]: starts a double on $PORT2 as an orphan, as a server is
// whose terminal was closed, with little more in its environment than what slipway writes down.
func startDouble(ts *testscript.TestScript, neg bool, args []string) {
	folder := ts.MkAbs(args[0])
	ts.Check(os.Mkdir(folder, 0o755))
	setMode(ts, neg, args)
	program := filepath.Join(ts.Getenv("DOUBLES"), args[0])
	command := []string{"-c", `"$@" </dev/null >/dev/null 2>&1 &`, "sh", "env", "-i", "PATH=" + os.Getenv("PATH"),
		"HOME=" + folder, "TERM=dumb"}
	var flags []string
	for _, arg := range args[2:] {
		if flag, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(flag, "--") {
			flags = append(flags, flag, value)
		} else {
			command = append(command, arg)
		}
	}
	command = append(command, program, "serve", "--port", ts.Getenv("PORT2"), "--double", folder)
	command = append(command, flags...)
	ts.Check(ts.Exec("/bin/sh", command...))
	answersAt(ts, false, []string{ts.Getenv("PORT2"), args[0]})
}

func setMode(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), "mode"), []byte(args[1]), 0o644))
}

// answers PORT WHO: within a while, who answers at /health is mtplx or slipway.
func answersAt(ts *testscript.TestScript, _ bool, args []string) {
	word := map[string]string{"mtplx": `"startup"`, "slipway": `"product":"slipway"`,
		"slipway-server": `"launch_id":"old"`}[args[1]]
	var last string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%s/health", args[0]))
		if err != nil {
			last = err.Error()
			continue
		}
		b, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if last = strings.ReplaceAll(string(b), `": `, `":`); strings.Contains(last, word) {
			return
		}
	}
	ts.Fatalf("on port %s not %s answers but: %s", args[0], args[1], last)
}

// started NAME TIMES: how often the double was started in all; exactly one of it runs.
func startedTimes(ts *testscript.TestScript, _ bool, args []string) {
	log := ts.ReadFile(filepath.Join(args[0], "log"))
	if n := strings.Count(log, "start "); strconv.Itoa(n) != args[1] || strings.Contains(log, "refused") ||
		strings.Count(log, "end ") != n-1 {
		ts.Fatalf("log:\n%s", log)
	}
}

// killserver: SIGKILL to our server, whose process the home names.
func killServer(ts *testscript.TestScript, _ bool, _ []string) {
	killServers(ts.Getenv("WORK"))
}

// killwatchers: SIGKILL to the watchers of this test, until none is left.
func killWatchers(ts *testscript.TestScript, _ bool, _ []string) {
	for left := true; left; time.Sleep(10 * time.Millisecond) {
		pids, err := process.PIDs()
		ts.Check(err)
		left = false
		for _, pid := range pids {
			d, err := process.Look(pid)
			if err == nil && slices.Contains(d.Argv, "watch-restore") && slices.ContainsFunc(d.Argv,
				func(a string) bool { return strings.HasPrefix(a, ts.Getenv("WORK")) }) {
				left = true
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// killBelow ends every process whose arguments name the folder: doubles and watchers.
func killBelow(folder string) {
	pids, err := process.PIDs()
	if err != nil {
		return
	}
	for _, pid := range pids {
		d, err := process.Look(pid)
		if err != nil || pid == os.Getpid() {
			continue
		}
		for i, arg := range d.Argv {
			if i > 0 && strings.HasPrefix(arg, folder) {
				syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}
	}
}
