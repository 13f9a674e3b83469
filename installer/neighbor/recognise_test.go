package neighbor

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/installer/neighbor/record"
	doubles "slipway/test/neighbors/double"
)

// every is each double, the kind that it must be recognised as, and how slipway would stop it.
var every = []struct {
	program, kind string
	channel       record.Channel
	model         string
}{
	{"mtplx", "mtplx", record.ChannelArgv, "org/double-7b"},
	{"omlx", "omlx", record.ChannelArgv, "org/double-7b"},
	{"rapid-mlx", "rapid-mlx", record.ChannelArgv, "org/double-7b"},
	{"qmlx", "qmlx", record.ChannelArgv, "org/double-7b"},
	{"vllm-mlx", "vllm-mlx", record.ChannelArgv, "org/double-7b"},
	{"llmster", "lmstudio", record.ChannelUnload, "org/double-7b"},
	{"ollama", "ollama", record.ChannelUnload, "org/double-7b"},
	{"llama-server", "llama.cpp", record.ChannelArgv, "org/double-7b"},
	{"mlx_lm.server", "mlx_lm", record.ChannelArgv, ""},
	{"dflash-serve", "dflash", record.ChannelArgv, ""},
	{"ds4-server", "ds4", record.ChannelArgv, "deepseek-v4-flash"},
	{"slipway-server", "slipway", record.ChannelArgv, "org/double-7b"},
	{"kapitsa", "unknown", "", ""},
	{"webapp", "unknown", "", ""},
}

// cannotProve are kinds that cannot be proven idle, or only by their own tool.
var cannotProve = []string{"mlx_lm", "dflash", "lmstudio", "unknown"}

func TestEachServerIsRecognisedAsItsKind(t *testing.T) {
	s := newSystem(t)
	for _, row := range every {
		t.Run(row.program, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, row.program).start()
			server := d.found(s)
			if server.Kind != row.kind || server.Channel != row.channel {
				t.Errorf("recognised as %q, channel %q, refusal %q", server.Kind, server.Channel, server.Refusal)
			}
			if row.channel == "" && server.Refusal == "" {
				t.Error("nothing says why it is not stopped")
			}
			if model := ""; len(server.Models) > 0 || row.model != "" {
				if len(server.Models) == 1 {
					model = server.Models[0]
				}
				if model != row.model {
					t.Errorf("models %+v", server.Models)
				}
			}
			if running := d.running(); len(running) != 1 || server.PID != running[0] || server.Exe != d.program ||
				server.UID != os.Getuid() {
				t.Errorf("pid %d of %v, exe %q, uid %d", server.PID, running, server.Exe, server.UID)
			}
			if row.kind != "unknown" && server.Starter.Type != "user" {
				t.Errorf("an orphan was started by %+v", server.Starter)
			}
			idle := s.ProveIdle(context.Background(), server, s.Timing)
			want := StateIdle
			if slices.Contains(cannotProve, row.kind) {
				want = StateUnknown
			}
			if idle.State != want {
				t.Errorf("%s: %v", idle.State, idle.Reasons)
			}
		})
	}
}

// work is what makes each double busy, as far as its kind can show it.
func TestWorkingServerIsNeverIdle(t *testing.T) {
	s := newSystem(t)
	for _, row := range every {
		if row.kind == "unknown" {
			continue
		}
		t.Run(row.program, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, row.program).start()
			server := d.found(s)
			modes := map[string][]State{"dishonest": {StateBusy}, "protected": {StateUnknown, StateBusy},
				"draining": {StateUnknown, StateBusy}}
			if !slices.Contains(cannotProve, row.kind) {
				modes["busy"], modes["wedged"] = []State{StateBusy}, []State{StateBusy}
				if row.kind != "ds4" && row.kind != "slipway" { // these two count nothing
					modes["moving"] = []State{StateBusy}
				}
			}
			for mode, want := range modes {
				d.mode(mode)
				if row.kind == "ds4" && (mode == "busy" || mode == "wedged") {
					eventually(t, "it holds its socket", func() bool { return len(mustConnections(t, d.port)) > 0 })
				}
				timing := s.Timing
				if mode == "dishonest" {
					timing.Span *= 4
				}
				idle := s.ProveIdle(context.Background(), server, timing)
				if !slices.Contains(want, idle.State) || len(idle.Reasons) == 0 {
					t.Errorf("%s: %s %v", mode, idle.State, idle.Reasons)
				}
				if mode == "wedged" && row.kind != "ds4" && !idle.Wedged {
					t.Errorf("wedged: not said (%v)", idle.Reasons)
				}
				if mode == "moving" && idle.Wedged {
					t.Error("moving: called wedged")
				}
			}
		})
	}
}

func TestRepliesOfAnotherShapeAreNeverIdle(t *testing.T) {
	s := newSystem(t)
	s.Timing.Samples, s.Timing.Drain = 1, 0
	for _, row := range every {
		if slices.Contains(cannotProve, row.kind) {
			continue
		}
		t.Run(row.program, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, row.program).start()
			server := d.found(s)
			for _, shape := range doubles.Shapes {
				d.mode("wrong:" + shape)
				idle := s.ProveIdle(context.Background(), server, s.Timing)
				// ds4 has no numbers and Ollama none that matter: for them, only what changes the fingerprint counts. A
				// slot of llama-server says by a flag whether it works.
				if (row.kind == "ds4" || row.kind == "ollama") &&
					slices.Contains([]string{"strings", "missing", "negative"}, shape) ||
					row.kind == "llama.cpp" && shape == "negative" {
					continue
				}
				if idle.State == StateIdle {
					t.Errorf("%s: idle", shape)
				}
			}
			d.mode("idle")
			if idle := s.ProveIdle(context.Background(), server, s.Timing); idle.State != StateIdle {
				t.Errorf("after all, right again: %s %v", idle.State, idle.Reasons)
			}
		})
	}
}

func TestEachKindsOwnSignsOfWorkCount(t *testing.T) {
	s := newSystem(t)
	for _, row := range []struct {
		program, mode string
		want          State
		why           string
	}{
		{"mtplx", "postcommit", StateBusy, "idle_postcommit"},
		{"mtplx", "pausing", StateBusy, "3 s ago"},
		{"mtplx", "fresh", StateIdle, ""},
		{"mtplx", "warming", StateUnknown, "warmup"},
		{"mtplx", "odd-warmup", StateIdle, ""},
		{"rapid-mlx", "healthz-draining", StateBusy, "draining"},
		{"vllm-mlx", "manager", StateUnknown, "model manager"},
		{"llama-server", "loading", StateBusy, "loading"},
		{"llama-server", "no-slots", StateIdle, ""},
		{"slipway-server", "background", StateBusy, "background"},
		{"slipway-server", "says-draining", StateBusy, "draining"},
	} {
		t.Run(row.program+" "+row.mode, func(t *testing.T) {
			d := newDouble(t, row.program).start()
			server := d.found(s)
			d.mode(row.mode)
			idle := s.ProveIdle(context.Background(), server, s.Timing)
			if idle.State != row.want || !strings.Contains(strings.Join(idle.Reasons, "; "), row.why) {
				t.Errorf("%s: %v", idle.State, idle.Reasons)
			}
		})
	}
}

func TestSlowServerIsUnknown(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	server := d.found(s)
	d.mode("slow")
	s.Timing.Request, s.Timing.Samples = 200*1e6, 2
	if idle := s.ProveIdle(context.Background(), server, s.Timing); idle.State != StateUnknown ||
		!strings.Contains(idle.Sentence(), "in time") {
		t.Errorf("%s: %v", idle.State, idle.Reasons)
	}
	again := d.found(s)
	if again.Stoppable() || !strings.Contains(again.Refusal, "does not answer") || again.PID != server.PID {
		t.Errorf("slow from the start: %+v", again)
	}
}

func TestServerWhoseProgramAndAnswersDisagreeIsNotStopped(t *testing.T) {
	s := newSystem(t)
	rename := func(t *testing.T, from, to string) string {
		path := filepath.Join(t.TempDir(), to)
		if err := os.Link(program(t, from), path); err != nil {
			b, err := os.ReadFile(program(t, from))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	for _, row := range []struct{ name, from, to, mode, why string }{
		{"a web server called mtplx", "webapp", "mtplx", "", "does not answer like one"},
		{"MTPLX's answers from another program", "mtplx", "something", "", "its program is another one"},
		{"llama.cpp's answers from a program called mtplx", "llama-server", "mtplx", "", "answers like llama-server"},
		{"MTPLX whose health names another pid", "mtplx", "mtplx", "supervised", "supervisor"},
		{"MTPLX that its app started", "mtplx", "mtplx", "app", "MTPLX.app"},
		{"MTPLX that wants a key", "mtplx", "mtplx", "protected", "wants a key"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDouble(t, row.from, withProgram(rename(t, row.from, row.to)), withArgs("serve")).start()
			d.mode(row.mode)
			server := d.found(s)
			if server.Stoppable() || !strings.Contains(server.Refusal, row.why) {
				t.Errorf("kind %q, refusal %q", server.Kind, server.Refusal)
			}
			if _, err := s.Stop(context.Background(), []Server{server}, StopOptions{}); err == nil {
				t.Error("it was stopped")
			}
			if len(d.running()) != 1 {
				t.Error("it does not run any more")
			}
		})
	}
}

func TestClientsAreNamedAndCountInEveryState(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	server := d.found(s)
	d.quiet()
	client, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", itoa(d.port)))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	idle := s.ProveIdle(context.Background(), server, s.Timing)
	if idle.State != StateBusy || len(idle.Clients) != 1 || !strings.Contains(idle.Clients[0], itoa(os.Getpid())) {
		t.Errorf("with a client: %s %v %v", idle.State, idle.Clients, idle.Reasons)
	}
	if again := d.found(s); again.PID != d.running()[0] {
		t.Errorf("the owner is %d", again.PID)
	}
	// The client sends a request and leaves while the server still works on it.
	client.Close()
	d.quiet()
	d.mode("slow")
	client, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", itoa(d.port)))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(client, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	time.Sleep(100 * time.Millisecond) // for the server to read it and to begin
	client.Close()
	d.mode("idle")
	abandoned := s.ProveIdle(context.Background(), server, s.Timing)
	if abandoned.State != StateBusy || len(abandoned.Clients) != 1 ||
		!strings.Contains(abandoned.Clients[0], "CLOSE_WAIT") {
		t.Errorf("an abandoned request: %s %v %v", abandoned.State, abandoned.Clients, abandoned.Reasons)
	}
	// A kind that says nothing of its work: its sockets do.
	gone := newDouble(t, "ds4-server").start()
	ds4 := gone.found(s)
	gone.mode("busy")
	eventually(t, "it works", func() bool { return len(mustConnections(t, gone.port)) > 0 })
	if idle := s.ProveIdle(context.Background(), ds4, s.Timing); idle.State != StateBusy {
		t.Errorf("ds4 with a socket: %s", idle.State)
	}
}

func TestLookingRunsNoToolOfTheNeighbour(t *testing.T) {
	s := newSystem(t)
	trap := filepath.Join(s.UserHome, ".lmstudio", "bin", "lms")
	if err := os.MkdirAll(filepath.Dir(trap), 0o700); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(s.Home, "ran")
	if err := os.WriteFile(trap, []byte("#!/bin/sh\necho > '"+ran+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := newDouble(t, "llmster").start()
	s.ExtraPorts = []int{d.port}
	servers, err := s.Find(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, server := range servers {
		if server.Port == d.port {
			seen = true
			if idle := s.ProveIdle(context.Background(), server, s.Timing); idle.State != StateUnknown {
				t.Errorf("%s: %v", idle.State, idle.Reasons)
			}
		}
	}
	if !seen {
		t.Error("LM Studio was not found")
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("lms was run")
	}
	entries, _ := os.ReadDir(filepath.Join(s.Home, "state"))
	if len(entries) > 0 {
		t.Errorf("looking left files: %v", entries)
	}
}

func TestFindSeesAKnownServerOnAnUnusualPort(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "llama-server").start()
	servers, err := s.Find(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(servers, func(f Server) bool { return f.Port == d.port && f.Kind == "llama.cpp" }) {
		t.Errorf("found %+v", servers)
	}
	own := d.found(s).Identity()
	if servers, err = s.Find(context.Background(), own); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(servers, func(f Server) bool { return f.Port == d.port }) {
		t.Error("our own server is listed among the neighbours")
	}
}

func TestForeignTextIsMadeFitToPrint(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx", withArgs("serve", "--model", "evil\x1b[2J\n\u202Emodel"+
		strings.Repeat("x", 200))).start()
	server := d.found(s)
	server.Idle = Idle{State: StateIdle}
	line := server.StopLine(time.Now())
	if strings.ContainsAny(line, "\x1b\n\u202e") || len(line) > 400 {
		t.Errorf("line %q", line)
	}
	if !strings.Contains(line, "evil?[2J??model") {
		t.Errorf("line %q", line)
	}
}

func TestSilentListenerIsUnknownNotFree(t *testing.T) {
	s := newSystem(t)
	s.Timing.Request = 200 * 1e6
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, c)
		}
	}()
	list, err := s.At(context.Background(), l.Addr().(*net.TCPAddr).Port)
	if err != nil || len(list) != 1 || list[0].Stoppable() || list[0].PID != os.Getpid() {
		t.Errorf("%+v, %v", list, err)
	}
}
