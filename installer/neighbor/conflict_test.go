package neighbor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/installer/neighbor/record"
)

var (
	idleSeconds = 35.4
	idleMTPLX   = Server{Kind: "mtplx", Title: "MTPLX", Port: 8000, PID: 812, Channel: record.ChannelArgv,
		Models: []string{"X"}, Started: time.Date(2026, 8, 1, 10, 2, 0, 0, time.Local).Format(time.RFC3339),
		Idle: Idle{State: StateIdle, IdleSeconds: &idleSeconds}, FootprintBytes: 17 << 30}
	busyLlama = Server{Kind: "llama.cpp", Title: "llama-server", Port: 8080, PID: 900, Channel: record.ChannelArgv,
		Idle: Idle{State: StateBusy, Reasons: []string{"slot 0 works"}}, FootprintBytes: 20 << 30}
	smallRapid = Server{Kind: "rapid-mlx", Title: "Rapid-MLX", Port: 8001, PID: 901, Channel: record.ChannelArgv,
		Idle: Idle{State: StateIdle}, FootprintBytes: 2 << 30}
	idleOllama = Server{Kind: "ollama", Title: "Ollama", Port: 11434, PID: 902, Channel: record.ChannelUnload,
		Models: []string{"a", "b"}, Idle: Idle{State: StateIdle}, FootprintBytes: 9 << 30}
	unknownProgram = Server{Kind: "unknown", Title: "an unknown program", Port: 8008, PID: 903,
		Refusal: "slipway does not know this program"}
)

func TestConflictsAreAsFewAsThePlanNeeds(t *testing.T) {
	all := []Server{smallRapid, busyLlama, idleOllama, idleMTPLX, unknownProgram}
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
		{"memory: the largest idle one is enough, the busy one is not touched",
			Need{Port: 9000, NeedsBytes: 30 << 30, AvailableBytes: 15 << 30}, []int{812}},
		{"memory: a second one is needed", Need{Port: 9000, NeedsBytes: 40 << 30, AvailableBytes: 15 << 30},
			[]int{812, 902}},
		{"memory: only with the busy one there is enough",
			Need{Port: 9000, NeedsBytes: 60 << 30, AvailableBytes: 15 << 30}, []int{812, 902, 901, 900}},
		{"the port's owner frees enough memory by itself",
			Need{Port: 8000, NeedsBytes: 30 << 30, AvailableBytes: 15 << 30}, []int{812}},
		{"the port's owner only unloads: its port stays, its memory goes",
			Need{Port: 11434, NeedsBytes: 20 << 30, AvailableBytes: 12 << 30}, []int{902, 812}},
	} {
		var got []int
		for _, c := range Conflicts(all, row.need) {
			got = append(got, c.Server.PID)
			if c.Why == "" || c.Ways() == "" && c.Server.Kind != "unknown" {
				t.Errorf("%s: pid %d without a reason or a way", row.name, c.Server.PID)
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: pids %v, want %v", row.name, got, row.want)
		}
	}
}

func TestGentlerWaysComeFirst(t *testing.T) {
	for _, row := range []struct {
		name   string
		server Server
		need   Need
		want   []string // in this order
	}{
		{"port", idleMTPLX, Need{Port: 8000, OtherPort: 8009},
			[]string{"Leave it alone and use port 8009 (--port 8009).", "With --allow-stop mtplx it is stopped"}},
		{"memory", idleMTPLX, Need{Port: 9000, NeedsBytes: 2, AvailableBytes: 1,
			Smaller: &Smaller{Model: "m", Profile: "balanced", Memory: "1GB"}},
			[]string{"Leave it alone and take m", "(--model m --profile balanced --memory 1GB).",
				"With --allow-stop mtplx"}},
		{"memory of a server that unloads", idleOllama, Need{Port: 9000, NeedsBytes: 2, AvailableBytes: 1},
			[]string{"Ollama holds", "With --allow-stop ollama slipway unloads its models"}},
		{"port of a server that only unloads", idleOllama, Need{Port: 11434}, []string{"quit it yourself"}},
		{"busy", busyLlama, Need{Port: 8080}, []string{"it is stopped when idle"}},
	} {
		conflicts := Conflicts([]Server{row.server}, row.need)
		if len(conflicts) != 1 {
			t.Fatalf("%s: %+v", row.name, conflicts)
		}
		rest := conflicts[0].Ways()
		for _, want := range row.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: %q is missing, or not in its place: %q", row.name, want, conflicts[0].Ways())
			}
			rest = after
		}
	}
	unknown := Conflicts([]Server{unknownProgram}, Need{Port: 8008, OtherPort: 8009})
	if len(unknown) != 1 || !slices.Equal(unknown[0].Gentle,
		[]string{"leave it alone and use port 8009 (--port 8009)."}) {
		t.Errorf("unknown: %+v", unknown)
	}
}

func TestStopLineNamesTheServerAndItsState(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.Local)
	for want, s := range map[string]Server{
		"Will stop MTPLX (pid 812, started 10:02, idle 35 s, model \"X\") and start it again when " +
			"slipway stops.": idleMTPLX,
		"Will ask Ollama (pid 902, idle) to unload \"a\", \"b\" and load it again when slipway stops.": idleOllama,
	} {
		if got := s.StopLine(now); got != want {
			t.Errorf("%q", got)
		}
	}
	if got := idleMTPLX.StopLine(now.Add(48 * time.Hour)); !strings.Contains(got, "started 2026-08-01 10:02") {
		t.Errorf("two days later: %q", got)
	}
}
