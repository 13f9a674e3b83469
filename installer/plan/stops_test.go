package plan

import (
	"strings"
	"testing"
)

func withStops(d Decisions) Decisions {
	d.Request.Launch, d.Request.Port, d.Request.AllowStop = true, 8000, "mtplx"
	d.Stops = []StoppedServer{{Kind: "mtplx", Title: "MTPLX", Port: 8000, PID: 812, StartUS: 7, BootID: "b",
		Exe: "/x/mtplx", Channel: "argv", Models: []string{"X"}}}
	return d
}

func TestStopNeedsItsOwnConsentAndPrecedesTheLaunch(t *testing.T) {
	p := Make(withStops(Decisions{Home: "/h"}))
	n := len(p.Actions)
	if p.Actions[n-2].Kind != StopsAction || p.Actions[n-1].Kind != LaunchAction {
		t.Fatalf("actions end with %s, %s", p.Actions[n-2].Kind, p.Actions[n-1].Kind)
	}
	stop := p.Actions[n-2]
	if len(stop.Consent) != 1 || stop.Consent[0] != Stop {
		t.Errorf("consent %v", stop.Consent)
	}
	if !strings.Contains(stop.Sentence, "MTPLX (pid 812, port 8000) with \"X\"") ||
		!strings.Contains(stop.Undo, "restore") {
		t.Errorf("sentence %q, undo %q", stop.Sentence, stop.Undo)
	}
}

func TestDigestNamesTheProcess(t *testing.T) {
	first := Make(withStops(Decisions{Home: "/h"})).Digest
	for name, change := range map[string]func(*StoppedServer){
		"another pid":         func(s *StoppedServer) { s.PID++ },
		"a later start":       func(s *StoppedServer) { s.StartUS++ },
		"another boot":        func(s *StoppedServer) { s.BootID = "c" },
		"another program":     func(s *StoppedServer) { s.Exe = "/y/mtplx" },
		"another way to stop": func(s *StoppedServer) { s.Channel = "launchd" },
		"another model":       func(s *StoppedServer) { s.Models = []string{"Y"} },
	} {
		d := withStops(Decisions{Home: "/h"})
		change(&d.Stops[0])
		if Make(d).Digest == first {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

func TestPortOfAServerThatIsStoppedIsNoBlockerUntilItIsStopped(t *testing.T) {
	p := Make(withStops(Decisions{Home: "/h"}))
	blockers := func(w World) string {
		var kinds []string
		for _, b := range Judge(p, w).Blockers {
			kinds = append(kinds, string(b.Kind))
		}
		return strings.Join(kinds, " ")
	}
	whole := World{HomeReady: true, ModelWhole: true, EngineWhole: true, SettingsWhole: true, PortTaken: true}
	for _, row := range []struct {
		name string
		set  func(*World)
		want string
	}{
		{"still there and idle", func(*World) {}, ""},
		{"busy", func(w *World) { w.StopsProblem = "it works" }, "neighbor"},
		{"stopped, and another program took the port", func(w *World) { w.StopsDone = true }, "port"},
		{"stopped, the port is free", func(w *World) { w.StopsDone, w.PortTaken = true, false }, ""},
	} {
		w := whole
		row.set(&w)
		if got := blockers(w); got != row.want {
			t.Errorf("%s: blockers %q, want %q", row.name, got, row.want)
		}
	}
}

func TestMonitorPortOfAStoppedServerIsNoBlocker(t *testing.T) {
	d := withStops(Decisions{Home: "/h"})
	d.Request.Port, d.Request.MonitorPort = 9000, 8000
	w := World{HomeReady: true, ModelWhole: true, EngineWhole: true, SettingsWhole: true, MonitorTaken: true}
	if got := Judge(Make(d), w).Blockers; len(got) != 0 {
		t.Errorf("it is stopped before the launch: %+v", got)
	}
	d.Stops = nil
	if got := Judge(Make(d), w).Blockers; len(got) != 1 || got[0].Kind != PortBlocked {
		t.Errorf("no action stops it: %+v", got)
	}
}

// The file outside the home is part of what is agreed to: named where a person reads, and covered by the digest.
func TestFileForARebootIsNamedInThePlan(t *testing.T) {
	d := withStops(Decisions{Home: "/h", Target: "darwin/arm64"})
	without := Make(d).Digest
	d.RebootAgent = "/Users/a/Library/LaunchAgents/dev.slipway.restore.12345678.plist"
	p := Make(d)
	if p.Digest == without {
		t.Error("the digest does not cover the file")
	}
	for _, a := range p.Actions {
		if a.Kind == StopsAction && strings.Contains(a.Sentence, "Outside the home, "+d.RebootAgent+" is written") {
			return
		}
	}
	t.Errorf("no action names the file: %+v", p.Actions)
}
