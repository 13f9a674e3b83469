package installer

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slipway/installer/machine"
	"slipway/installer/neighbor"
	"slipway/installer/neighbor/record"
	"slipway/installer/plan"
	"slipway/profiles"
)

// What a person reads about a server in the way: complete sentences, and no promise that was not asked for.
func TestWaysAroundAServerAreWholeSentences(t *testing.T) {
	for _, row := range []struct {
		name   string
		server neighbor.Server
		need   neighbor.Need
		want   string
	}{
		{"not looked at yet", neighbor.Server{Kind: "mtplx", Title: "MTPLX", Port: 8000, PID: 1, Channel: "argv",
			Idle: neighbor.Idle{State: neighbor.StateUnknown, Reasons: []string{"not looked at yet"}}},
			neighbor.Need{Port: 8000},
			"MTPLX has port 8000. Choose another port with --port. With --allow-stop mtplx it is stopped when " +
				"idle, and started again later."},
		{"unknown", neighbor.Server{Kind: "unknown", Title: "an unknown program", Port: 8000, PID: 1,
			Refusal: "slipway does not know this program"},
			neighbor.Need{Port: 8000}, ""},
		{"refused", neighbor.Server{Kind: "omlx", Title: "oMLX", Port: 8000, PID: 1,
			Refusal: "it belongs to another user"},
			neighbor.Need{Port: 8000}, "oMLX has port 8000. Choose another port with --port. slipway does not stop " +
				"it: it belongs to another user."},
		{"only unloads", neighbor.Server{Kind: "ollama", Title: "Ollama", Port: 8000, PID: 1, Channel: "unload"},
			neighbor.Need{Port: 8000}, "Ollama has port 8000. Choose another port with --port. slipway only unloads " +
				"its models, which does not free its port: quit it yourself to use this one."},
		{"memory", neighbor.Server{Kind: "ollama", Title: "Ollama", Port: 1, PID: 1, Channel: "unload",
			FootprintBytes: 9 << 30},
			neighbor.Need{Port: 8000, NeedsBytes: 20 << 30, AvailableBytes: 12 << 30},
			"With --allow-stop ollama slipway unloads its models once it is idle, and loads them again when " +
				"ours stops."},
	} {
		conflicts := neighbor.Conflicts([]neighbor.Server{row.server}, row.need)
		if len(conflicts) != 1 {
			t.Fatalf("%s: %d conflicts", row.name, len(conflicts))
		}
		if got := conflicts[0].Ways(); !strings.HasSuffix(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

func TestAllowedKindsHaveOneSpellingInThePlan(t *testing.T) {
	for named, want := range map[string]string{"": "", "llama-server": "llama.cpp",
		"llama.cpp,llama-server": "llama.cpp",
		"mtplx,ollama":           "mtplx,ollama"} {
		if got, err := allowedKinds(plan.Kinds(named)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", named, got, err)
		}
	}
	if _, err := allowedKinds("notaserver"); err == nil || !strings.Contains(err.Error(), "llama.cpp, lmstudio") {
		t.Errorf("not a server: %v", err)
	}
}

// weighed is what weigh takes of servers found on this machine, by pid.
func weighed(t *testing.T, in Input, servers ...neighbor.Server) (pids []int) {
	t.Helper()
	home := t.TempDir()
	n := neighborhood{system: &neighbor.System{Home: home, UID: 501}}
	for _, s := range n.weigh(in, servers, choice{}, machine.Facts{}, nil, 9000) {
		pids = append(pids, s.Server.PID)
	}
	return pids
}

func TestAnotherUsersServerIsIgnoredUnlessItIsInTheWay(t *testing.T) {
	models := []string{"m"}
	ours := neighbor.Server{Kind: "mtplx", Title: "MTPLX", Port: 8000, PID: 1, UID: 501, Models: models,
		Channel: record.ChannelArgv}
	theirs := neighbor.Server{Kind: "mtplx", Title: "MTPLX", Port: 8001, PID: 2, UID: 502, Models: models,
		Refusal: "it belongs to another user"}
	in := Input{Request: plan.Request{AllowStop: "mtplx"}}
	if got := weighed(t, in, ours, theirs); !slices.Equal(got, []int{1}) {
		t.Errorf("not in the way: %v", got)
	}
	if got := weighed(t, in, theirs); got != nil {
		t.Errorf("alone and not in the way: %v", got)
	}
	theirs.Port = 9000
	if got := weighed(t, in, ours, theirs); !slices.Equal(got, []int{2}) {
		t.Errorf("on the wanted port: %v", got)
	}
}

// A choice for a Mac whose other server holds 20 GiB of the GPU's memory: what is offered fits when it is asked for by
// its flags, and no server is stopped.
func TestOfferedSmallerChoiceFits(t *testing.T) {
	facts := machine.Facts{OS: machine.Fact[string]{Value: "darwin", Known: true},
		RAM:        machine.Fact[int64]{Value: 64 << 30, Known: true},
		WorkingSet: machine.Fact[int64]{Value: 48 << 30, Known: true, Certain: true}}
	can := profiles.Capabilities{KVFormats: []string{"f32", "f16", "q8", "q4"}, PrefillPolicies: []string{"exact"},
		Drafts: []string{"mtp"}, Devices: []string{"cpu", "metal"}}
	other := neighbor.Server{Kind: "mtplx", Title: "MTPLX", Port: 8000, PID: 1, UID: 501,
		Models: []string{"m"}, Channel: record.ChannelArgv, FootprintBytes: 20 << 30}
	weigh := func(in Input) (neighborhood, []neighbor.Conflict) {
		t.Helper()
		c, err := choose(in, facts, known{}, can)
		if err != nil {
			t.Fatal(err)
		}
		n := neighborhood{system: &neighbor.System{Home: t.TempDir(), UID: 501}}
		return n, n.weigh(in, []neighbor.Server{other}, c, facts, pinned(known{}, false), 9000)
	}
	weighOf := func(in Input) string { n, _ := weigh(in); return n.contended }
	said := weighOf(Input{Request: plan.Request{Model: "qwen3.8-27b-mtplx-bare-speed"}})
	var asked Input
	_, flags, _ := strings.Cut(said, " (--model ")
	if n, _ := fmt.Sscanf(flags, "%s --profile %s --memory %dGB).", &asked.Model, &asked.Profile,
		&asked.MemoryBytes); n != 3 {
		t.Fatalf("no smaller choice in: %q", said)
	}
	asked.MemoryBytes *= gigabyte
	if again := weighOf(asked); again != "" {
		t.Errorf("%s was offered, and then: %q", said, again)
	}
	if _, list := weigh(Input{Request: plan.Request{Model: "qwen3.8-27b-mtplx-bare-speed",
		AllowStop: "mtplx"}}); len(list) != 1 || !strings.Contains(strings.Join(list[0].Gentle, " "),
		"leave it alone and take ") {
		t.Errorf("named to be stopped: %+v", list)
	}
}

func TestOfferedPortIsFreeAndNotPromised(t *testing.T) {
	n := neighborhood{}
	first := n.freePort(context.Background(), DefaultPort, 8000, DefaultMonitorPort)
	if first == 0 || first == DefaultMonitorPort {
		t.Fatalf("offered %d", first)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first)))
	if err != nil {
		t.Fatalf("the port that was offered: %v", err)
	}
	second := n.freePort(context.Background(), DefaultPort, 8000, DefaultMonitorPort)
	listener.Close()
	if second == first {
		t.Errorf("offered %d, which is taken", second)
	}
	n.stopped = []neighbor.Outcome{{Port: first}}
	if got := n.freePort(context.Background(), DefaultPort, 8000, DefaultMonitorPort); got == first {
		t.Errorf("offered %d, to which a stopped server comes back", got)
	}
	n.stopped = nil
	if got := n.freePort(context.Background(), DefaultPort, first, DefaultMonitorPort); got == first {
		t.Errorf("offered %d, which is the port that is wanted", got)
	}
}
