package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"slipway/installer/answers"
	"slipway/installer/build"
	"slipway/installer/neighbor"
)

// The scripts run this program as it is, on real homes, ports and processes. The server that they set up is built from
// testdata/source, a test double that speaks the contract of slipway-server.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"slipway": func() {
		prebuiltServer = os.Getenv("TEST_PREBUILT_DIGEST")
		bareMachine = os.Getenv("TEST_BARE_MACHINE") != ""
		another = anotherMachine
		if span, err := time.ParseDuration(os.Getenv("TEST_IDLE_SPAN")); err == nil {
			neighbor.DefaultTiming.Span = span
		}
		main()
	}, "llama-server": silentServer})
}

func TestScripts(t *testing.T) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	caches := goEnv(t, "GOCACHE", "GOMODCACHE", "GOPROXY")
	source, err := filepath.Abs("testdata/source")
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", caches[0])
			env.Setenv("GOMODCACHE", caches[1])
			env.Setenv("GOPROXY", caches[2])
			env.Setenv("GODIR", filepath.Dir(goCommand))
			env.Setenv("HOME", filepath.Join(env.WorkDir, "user"))
			env.Setenv("SLIPWAY_HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("SLIPWAY_SOURCE", source)
			env.Setenv("TEST_RECORDED_SOURCE", repository)
			env.Setenv("TERM", "xterm")
			env.Setenv("BIN", filepath.SplitList(env.Getenv("PATH"))[0])
			for _, name := range []string{"PORT", "PORT2"} {
				env.Setenv(name, strconv.Itoa(freePort(t)))
			}
			env.Setenv("TEST_PORTS", fmt.Sprint(freePort(t), " ", freePort(t)))
			env.Defer(func() { killServers(env.WorkDir) })
			return os.Mkdir(filepath.Join(env.WorkDir, "user"), 0o755)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "document": document, "snapshot": snapshot, "flip": flip, "field": field, "listen": listen,
			"digest": digest, "edited": edited,
		},
	})
}

// exits CODE COMMAND ARGS...: the command must end with exactly this code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		failed, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = failed.ExitCode()
	}
	if code != want {
		ts.Fatalf("%s ended with exit code %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}

// document VERB: standard output is exactly one document that the schema of the verb accepts.
func document(ts *testscript.TestScript, neg bool, args []string) {
	verb := strings.Join(args, " ")
	answer, err := answers.Schema(verb)
	ts.Check(err)
	compiler := jsonschema.NewCompiler()
	schema, err := json.Marshal(answer.Schema)
	ts.Check(err)
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	ts.Check(err)
	ts.Check(compiler.AddResource("schema.json", parsed))
	compiled, err := compiler.Compile("schema.json")
	ts.Check(err)
	out := ts.ReadFile("stdout")
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(out)) // refuses a second document
	if err != nil {
		ts.Fatalf("standard output is not one document: %v\n%s", err, out)
	}
	err = compiled.Validate(value)
	if neg && err == nil {
		ts.Fatalf("the document is accepted")
	}
	if !neg && err != nil {
		ts.Fatalf("%v\n%s", err, out)
	}
}

// field PATH VALUE: a field of the document, by dots and numbers, is this value as JSON writes it (strings bare).
func field(ts *testscript.TestScript, neg bool, args []string) {
	var at any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &at))
	for _, key := range strings.Split(args[0], ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(v) {
				ts.Fatalf("no %s in %s", key, args[0])
			}
			at = v[n]
		default:
			ts.Fatalf("no %s in %s", key, args[0])
		}
	}
	found := fmt.Sprint(at)
	if len(args) == 3 && args[1] == "->" {
		ts.Setenv(args[2], found)
		return
	}
	if (found == args[1]) == neg {
		ts.Fatalf("%s is %s", args[0], found)
	}
}

// snapshot FILE DIR...: names, modes and hashes of everything below the folders, with what differs from run to run
// masked, for cmp.
func snapshot(ts *testscript.TestScript, _ bool, args []string) {
	var all strings.Builder
	for _, dir := range args[1:] {
		text, err := maskedTree(ts.MkAbs(dir))
		ts.Check(err)
		all.WriteString(text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(all.String()), 0o644))
}

// flip FILE: one bit of the middle byte changes; size and time stay.
func flip(ts *testscript.TestScript, _ bool, args []string) {
	matches, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(matches) != 1 {
		ts.Fatalf("%d files match %s", len(matches), args[0])
	}
	ts.Check(flipBit(matches[0]))
}

func flipByte(t *testing.T, file string) {
	t.Helper()
	if err := flipBit(file); err != nil {
		t.Fatal(err)
	}
}

// flipBit changes one bit in the middle in place: inode, size, mode and modification time stay.
func flipBit(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	for _, step := range []func() error{
		func() error { return os.Chmod(file, 0o600) },
		func() error { return os.WriteFile(file, data, info.Mode()) },
		func() error { return os.Chmod(file, info.Mode()) },
		func() error { return os.Chtimes(file, info.ModTime(), info.ModTime()) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// edited FILE: as some editors save it, with a mark of byte order and the ends of lines of Windows.
func edited(ts *testscript.TestScript, _ bool, args []string) {
	matches, err := filepath.Glob(ts.MkAbs(args[0]))
	if err != nil || len(matches) != 1 {
		ts.Fatalf("%d files match %s", len(matches), args[0])
	}
	data, err := os.ReadFile(matches[0])
	ts.Check(err)
	ts.Check(os.WriteFile(matches[0], []byte("\ufeff"+strings.ReplaceAll(string(data), "\n", "\r\n")), 0o600))
}

// digest NAME FILE: the variable becomes the file's SHA-256.
func digest(ts *testscript.TestScript, _ bool, args []string) {
	sum, _, err := build.HashFile(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Setenv(args[0], string(sum))
}

// listen PORT: this test process holds the port until the script ends.
func listen(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	ts.Check(err)
	ts.Defer(func() { l.Close() })
}

func goEnv(t *testing.T, names ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

var nextPort atomic.Int32

// freePort gives each caller a port of its own, below the range from which systems hand out ports, so that no other
// test's connection takes it between here and its use.
func freePort(t *testing.T) int {
	t.Helper()
	nextPort.CompareAndSwap(0, int32(20000+os.Getpid()*97%9000))
	for range 1000 {
		port := int(nextPort.Add(1))
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// killServers ends every server that a script left: those whose records lie below its folder.
func killServers(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "server.json" {
			var record struct{ Process struct{ PID int } }
			if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &record) == nil &&
				record.Process.PID > 0 {
				syscall.Kill(record.Process.PID, syscall.SIGKILL)
			}
		}
		return nil
	})
}
