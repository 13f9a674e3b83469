package installer

import (
	"strings"
	"testing"

	"slipway/installer/neighbor/contention"
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
