package installer

import (
	"slices"
	"strings"
	"testing"

	"slipway/installer/machine"
	"slipway/installer/neighbor"
	"slipway/installer/neighbor/contention"
	"slipway/installer/neighbor/record"
)

// What a person reads about a server in the way: whole sentences, nothing promised that was not asked for.
func TestWaysAroundAServerAreWholeSentences(t *testing.T) {
	for _, row := range []struct {
		name     string
		neighbor contention.Neighbor
		need     contention.Need
		want     string
	}{
		{"not looked at yet", contention.Neighbor{Kind: "mtplx", Title: "MTPLX", Port: 8000, PID: 1, Channel: "argv", State: "unknown", StateSentence: "cannot be proved idle: not looked at yet"},
			contention.Need{Port: 8000},
			"MTPLX has port 8000. Choose another port with --port. With --allow-stop mtplx slipway stops it once it is idle, and starts it again when ours stops."},
		{"unknown", contention.Neighbor{Kind: "unknown", Title: "an unknown program", Port: 8000, PID: 1, Refusal: "slipway does not know this program"},
			contention.Need{Port: 8000}, ""},
		{"refused", contention.Neighbor{Kind: "omlx", Title: "oMLX", Port: 8000, PID: 1, Refusal: "it belongs to another user"},
			contention.Need{Port: 8000}, "oMLX has port 8000. Choose another port with --port. slipway does not stop it: it belongs to another user."},
		{"only unloads", contention.Neighbor{Kind: "ollama", Title: "Ollama", Port: 8000, PID: 1, Channel: "unload"},
			contention.Need{Port: 8000}, "Ollama has port 8000. Choose another port with --port. slipway only unloads its models, which does not free its port: quit it yourself to use this one."},
		{"memory", contention.Neighbor{Kind: "ollama", Title: "Ollama", Port: 1, PID: 1, Channel: "unload", FootprintBytes: 9 << 30},
			contention.Need{Port: 8000, BudgetBytes: 20 << 30, AvailableBytes: 12 << 30},
			"With --allow-stop ollama slipway unloads its models once it is idle, and loads them again when ours stops."},
	} {
		conflicts := contention.Weigh([]contention.Neighbor{row.neighbor}, row.need)
		if len(conflicts) != 1 {
			t.Fatalf("%s: %d conflicts", row.name, len(conflicts))
		}
		if got := waysOf(conflicts[0]); !strings.HasSuffix(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

// weighed is what weigh takes of servers found on this machine, by pid.
func weighed(t *testing.T, ask Ask, servers ...neighbor.Server) (pids []int) {
	t.Helper()
	home := t.TempDir()
	n := neighborhood{system: &neighbor.System{Home: home, UID: 501}}
	for _, s := range n.weigh(ask, servers, choice{}, machine.Facts{}, 9000) {
		pids = append(pids, s.PID)
	}
	return pids
}

func TestAnotherUsersServerIsNoVetoWhereItIsNotInTheWay(t *testing.T) {
	models := []record.Model{{ID: "m"}}
	ours := neighbor.Server{Kind: "mtplx", Title: "MTPLX", Port: 8000, PID: 1, UID: 501, Models: models, Channel: record.ChannelArgv}
	theirs := neighbor.Server{Kind: "mtplx", Title: "MTPLX", Port: 8001, PID: 2, UID: 502, Models: models, Refusal: "it belongs to another user"}
	ask := Ask{AllowStop: []string{"mtplx"}}
	if got := weighed(t, ask, ours, theirs); !slices.Equal(got, []int{1}) {
		t.Errorf("not in the way: %v", got)
	}
	if got := weighed(t, ask, theirs); got != nil {
		t.Errorf("alone and not in the way: %v", got)
	}
	theirs.Port = 9000
	if got := weighed(t, ask, ours, theirs); !slices.Equal(got, []int{2}) {
		t.Errorf("on the very port: %v", got)
	}
}
