package contention

import (
	"slices"
	"strings"
	"testing"
)

func seconds(n float64) *float64 { return &n }

var (
	mtplx = Neighbor{Kind: "mtplx", Title: "MTPLX", Port: 8000, PID: 812, Channel: "argv", Models: []string{"X"}, Started: "10:02", State: "idle", IdleSeconds: seconds(35.4), FootprintBytes: 17 << 30}
	busy  = Neighbor{Kind: "llama.cpp", Title: "llama-server", Port: 8080, PID: 900, Channel: "argv", State: "busy", StateSentence: "busy: slot 0 works", FootprintBytes: 20 << 30}
	small = Neighbor{Kind: "rapid-mlx", Title: "Rapid-MLX", Port: 8001, PID: 901, Channel: "argv", State: "idle", FootprintBytes: 2 << 30}
	loads = Neighbor{Kind: "ollama", Title: "Ollama", Port: 11434, PID: 902, Channel: "unload", Models: []string{"a", "b"}, State: "idle", FootprintBytes: 9 << 30}
	other = Neighbor{Kind: "unknown", Title: "an unknown program", Port: 8008, PID: 903, Refusal: "slipway does not know this program"}
)

func TestOnlyWhatIsNeededIsInTheWay(t *testing.T) {
	all := []Neighbor{small, busy, loads, mtplx, other}
	for _, row := range []struct {
		name string
		need Need
		want []int // pids, in order
	}{
		{"nothing is contended", Need{Port: 9000, NeedsBytes: 10 << 30, AvailableBytes: 20 << 30}, nil},
		{"memory was not weighed", Need{Port: 9000}, nil},
		{"the port", Need{Port: 8000}, []int{812}},
		{"the monitor's port", Need{Port: 9000, MonitorPort: 8080}, []int{900}},
		{"a port of a program that slipway does not know", Need{Port: 8008}, []int{903}},
		{"memory: the largest idle one is enough, the busy one is not touched", Need{Port: 9000, NeedsBytes: 30 << 30, AvailableBytes: 15 << 30}, []int{812}},
		{"memory: a second one is needed", Need{Port: 9000, NeedsBytes: 40 << 30, AvailableBytes: 15 << 30}, []int{812, 902}},
		{"memory: only with the busy one there is enough", Need{Port: 9000, NeedsBytes: 60 << 30, AvailableBytes: 15 << 30}, []int{812, 902, 901, 900}},
		{"the port's owner frees enough memory by itself", Need{Port: 8000, NeedsBytes: 30 << 30, AvailableBytes: 15 << 30}, []int{812}},
		{"the port's owner only unloads: its port stays, its memory goes", Need{Port: 11434, NeedsBytes: 20 << 30, AvailableBytes: 12 << 30}, []int{902, 812}},
	} {
		var got []int
		for _, c := range Weigh(all, row.need) {
			got = append(got, c.Neighbor.PID)
			if c.Why == "" || len(c.Ways) == 0 {
				t.Errorf("%s: pid %d without a reason or a way", row.name, c.Neighbor.PID)
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: pids %v, want %v", row.name, got, row.want)
		}
	}
}

func TestGentlerWaysComeFirst(t *testing.T) {
	ways := func(c Conflict) (ids []string) {
		for _, w := range c.Ways {
			ids = append(ids, w.ID)
		}
		return ids
	}
	for _, row := range []struct {
		name string
		n    Neighbor
		need Need
		want []string
	}{
		{"port", mtplx, Need{Port: 8000, OtherPort: 8009}, []string{"other_port", "stop"}},
		{"memory", mtplx, Need{Port: 9000, NeedsBytes: 2, AvailableBytes: 1, Smaller: &Smaller{Model: "m", Profile: "balanced"}}, []string{"smaller_profile", "stop"}},
		{"memory of a server that unloads", loads, Need{Port: 9000, NeedsBytes: 2, AvailableBytes: 1}, []string{"unload"}},
		{"port of a server that only unloads", loads, Need{Port: 11434}, []string{"by_hand"}},
		{"busy", busy, Need{Port: 8080}, []string{"by_hand", "stop"}},
		{"unknown", other, Need{Port: 8008, OtherPort: 8009}, []string{"other_port", "by_hand"}},
	} {
		conflicts := Weigh([]Neighbor{row.n}, row.need)
		if len(conflicts) != 1 || !slices.Equal(ways(conflicts[0]), row.want) {
			t.Errorf("%s: %+v", row.name, conflicts)
		}
	}
}

func TestHumanLine(t *testing.T) {
	if got, want := StopLine(mtplx), "Will stop MTPLX (pid 812, started 10:02, idle 35 s, model \"X\") and start it again when slipway stops."; got != want {
		t.Errorf("%q", got)
	}
	if got, want := StopLine(loads), "Will ask Ollama (pid 902, idle) to unload \"a\", \"b\" and load it again when slipway stops."; got != want {
		t.Errorf("%q", got)
	}
}

func TestOnlyNamedKindsAreStopped(t *testing.T) {
	conflicts := Weigh([]Neighbor{mtplx, busy, other}, Need{Port: 8000, MonitorPort: 8080})
	conflicts = append(conflicts, Weigh([]Neighbor{other}, Need{Port: 8008})...)
	for _, row := range []struct {
		name     string
		allowed  []string
		byDigest bool
		stop     int
		missing  string
	}{
		{"nothing allowed", nil, false, 0, "mtplx llama.cpp"},
		{"one", []string{"mtplx"}, false, 1, "llama.cpp"},
		{"a title is no name", []string{"MTPLX"}, false, 0, "mtplx llama.cpp"},
		{"the plan's digest", nil, true, 2, ""},
		{"unknown programs cannot be allowed", []string{"unknown", "mtplx", "llama.cpp"}, false, 2, ""},
	} {
		stop, missing := Choose(conflicts, row.allowed, row.byDigest)
		if len(stop) != row.stop || strings.Join(missing, " ") != row.missing {
			t.Errorf("%s: %d to stop, %v not allowed", row.name, len(stop), missing)
		}
	}
}
