package plan

import (
	"strings"
	"testing"

	"slipway/units"
)

func someDecisions() Decisions {
	return Decisions{Home: "/home/a b/.slipway", Target: "linux/amd64",
		Request: Request{Model: "pocket", Profile: "exact", Port: 8008, MonitorPort: 8010, Launch: true},
		Model: Model{ID: "pocket", Title: "Pocket", Repo: "slipway/pocket", Folder: "models/slipway--pocket/rev",
			Files: 4,
			Bytes: 7_000_000, Embedded: true},
		Profile: Profile{Name: "exact", WindowTokens: 32768, KVFormat: "f32", PrefillPolicy: "exact", Draft: "none",
			Parallel: 2, Device: "cpu"},
		Engine: Engine{Origin: FromSource, ID: "0123456789abcdef", Source: "sha256:aa", GoVersion: "go1.26.8"},
	}
}

func TestDigestChangesWithEveryDecision(t *testing.T) {
	base := Make(someDecisions())
	if again := Make(someDecisions()); again.Digest != base.Digest {
		t.Fatal("the same decisions give two digests")
	}
	for name, change := range map[string]func(*Decisions){
		"home":     func(d *Decisions) { d.Home += "2" },
		"target":   func(d *Decisions) { d.Target = "darwin/arm64" },
		"port":     func(d *Decisions) { d.Request.Port++ },
		"launch":   func(d *Decisions) { d.Request.Launch = false },
		"told":     func(d *Decisions) { d.Request.AcceptUnproven = true },
		"revision": func(d *Decisions) { d.Model.Revision = "1111111111111111111111111111111111111111" },
		"lock":     func(d *Decisions) { d.Model.LockDigest = "sha256:bb" },
		"window":   func(d *Decisions) { d.Profile.WindowTokens = 4096 },
		"kv":       func(d *Decisions) { d.Profile.KVFormat = "q8" },
		"disk":     func(d *Decisions) { d.Request.DiskCacheBytes = DiskCacheOff },
		"cache":    func(d *Decisions) { d.Profile.CacheMemoryBytes = 1 << 30 },
		"rules":    func(d *Decisions) { d.Request.Normalize = `[{"pattern":"a","replacement":"b"}]` },
		"engine":   func(d *Decisions) { d.Engine.ID = "fedcba9876543210" },
	} {
		d := someDecisions()
		change(&d)
		if Make(d).Digest == base.Digest {
			t.Errorf("%s is not in the digest", name)
		}
	}
}

// A plan may be worded better without becoming another plan: its digest covers decisions, not words.
func TestWordsAreNotInTheDigest(t *testing.T) {
	base := Make(someDecisions())
	d := someDecisions()
	d.Model.Title, d.Profile.Sentence = "Pocket, in other words", "Context: 32,768 tokens."
	reworded := Make(d)
	for i := range reworded.Actions {
		a := &reworded.Actions[i]
		a.Sentence, a.Precondition, a.Undo = "other", "other", "other"
	}
	if DigestOf(reworded) != base.Digest {
		t.Error("words are in the digest")
	}
	for name, change := range map[string]func(*Action){
		"kind":    func(a *Action) { a.Kind = LaunchAction },
		"consent": func(a *Action) { a.Consent = append(a.Consent, Stop) },
		"paths":   func(a *Action) { a.Touches.Paths = append(a.Touches.Paths, "other") },
		"ports":   func(a *Action) { a.Touches.Ports = append(a.Touches.Ports, 1) },
		"bytes":   func(a *Action) { a.Touches.DownloadBytes++ },
	} {
		p := Make(someDecisions())
		change(&p.Actions[1])
		if DigestOf(p) == base.Digest {
			t.Errorf("%s of an action is not in the digest", name)
		}
	}
}

// Observations must never reach the digest: a plan stays good through a broken download and a reboot.
func TestDigestIsNotTouchedByTheWorld(t *testing.T) {
	p := Make(someDecisions())
	before := p.Digest
	Judge(p, World{FreeBytes: 1, FreeKnown: true, PortTaken: true, PortOwner: "x", OpenDigest: "y"})
	Judge(p, World{HomeReady: true, ModelWhole: true, EngineWhole: true, SettingsWhole: true, ServerRunning: true})
	if DigestOf(p) != before || p.Digest != before {
		t.Fatal("judging changed the plan")
	}
}

func TestCanonicalForm(t *testing.T) {
	got, err := Canonical(map[string]any{"b": 1, "a": []any{"<&>", "й", nil, true},
		"B": map[string]any{"y": "", "x": int64(9007199254740991)}})
	want := `{"B":{"x":9007199254740991,"y":""},"a":["<&>","й",null,true],"b":1}`
	if err != nil || string(got) != want {
		t.Fatalf("%s %v\nwant %s", got, err, want)
	}
	if _, err := Canonical(map[string]any{"a": 1.5}); err == nil {
		t.Fatal("a float has no canonical form here and was accepted")
	}
}

func TestPlanFileIsReadBackAndAnythingElseIsRefused(t *testing.T) {
	p := Make(someDecisions())
	file := WriteFile(p)
	request, home, digest, err := ReadFile(file)
	if err != nil || request != p.Decisions.Request || home != p.Decisions.Home || digest != p.Digest {
		t.Fatalf("%+v %s %s %v", request, home, digest, err)
	}
	for name, data := range map[string]string{
		"empty":         "",
		"not JSON":      "plan",
		"cut":           string(file[:len(file)/2]),
		"unknown field": strings.Replace(string(file), `"schema_version"`, `"run": "rm", "schema_version"`, 1),
		"newer schema":  strings.Replace(string(file), `"schema_version": 1`, `"schema_version": 2`, 1),
		"too long":      strings.Repeat(" ", MaxFileBytes+1),
	} {
		if _, _, _, err := ReadFile([]byte(data)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestJudge(t *testing.T) {
	all := World{HomeReady: true, ModelWhole: true, EngineWhole: true, SettingsWhole: true, ServerRunning: true,
		FreeKnown: true, FreeBytes: 1 << 40}
	with := func(change func(*World)) World {
		w := all
		change(&w)
		return w
	}
	for _, row := range []struct {
		name            string
		world           World
		ready, canApply bool
		pending         int
		blocker         BlockerKind
	}{
		{"nothing there", World{FreeKnown: true, FreeBytes: 1 << 40}, false, true, 5, ""},
		{"all there", all, true, true, 0, ""},
		{"server stopped", with(func(w *World) { w.ServerRunning = false }), true, true, 1, ""},
		{"port taken", with(func(w *World) { w.ServerRunning, w.PortTaken = false, true }), false, false, 1,
			PortBlocked},
		{"the monitor's port taken", with(func(w *World) { w.ServerRunning, w.MonitorTaken = false, true }), false,
			false, 1,
			PortBlocked},
		{"port held by our own running server", with(func(w *World) { w.PortTaken = true }), true, true, 0, ""},
		{"home refused", with(func(w *World) { w.HomeReady, w.HomeRefused = false, "is not ours." }), false, false, 1,
			HomeBlocked},
		{"file for a folder", with(func(w *World) { w.HomeReady, w.HomeConflict = false, "is a file." }), false, false,
			1,
			FolderBlocked},
		{"no lock", with(func(w *World) { w.ModelWhole, w.ModelProblem = false, "No lock." }), false, false, 1,
			ModelBlocked},
		{"installed before its lock was lost", with(func(w *World) { w.ModelProblem = "No lock." }), true, true, 0, ""},
		{"no Go", with(func(w *World) { w.EngineWhole, w.EngineProblem = false, "No Go." }), false, false, 1,
			EngineBlocked},
		{"built before Go went away", with(func(w *World) { w.EngineProblem = "No Go." }), true, true, 0, ""},
		{"does not fit", with(func(w *World) { w.NotFit = "Too big." }), false, false, 1, MemoryBlocked},
		{"no space for what is missing", with(func(w *World) {
			w.ModelWhole, w.ModelMissingBytes, w.FreeBytes = false, 7e6,
				1e6
		}), false, false, 1, SpaceBlocked},
		{"no space and nothing missing", with(func(w *World) { w.FreeBytes = 0 }), true, true, 0, ""},
		{"space unknown", with(func(w *World) { w.ModelWhole, w.ModelMissingBytes, w.FreeKnown = false, 7e6, false }),
			false,
			true, 1, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := Judge(Make(someDecisions()), row.world)
			if s.Ready != row.ready || s.CanApply != row.canApply || s.PendingCount() != row.pending {
				t.Errorf("ready %v, can apply %v, pending %d; want %v, %v, %d", s.Ready, s.CanApply, s.PendingCount(),
					row.ready,
					row.canApply, row.pending)
			}
			if row.blocker == "" != (len(s.Blockers) == 0) || row.blocker != "" && s.Blockers[0].Kind != row.blocker {
				t.Errorf("blockers %+v, want %q", s.Blockers, row.blocker)
			}
			for _, b := range s.Blockers {
				if b.Sentence == "" || b.Fix == "" {
					t.Errorf("a blocker without sentence or fix: %+v", b)
				}
			}
			for _, c := range s.Checks {
				if c.Status == "fail" && c.Fix == "" {
					t.Errorf("check %s fails without a fix", c.ID)
				}
			}
		})
	}
}

func TestTouchesStayBelowTheHome(t *testing.T) {
	for _, a := range Make(someDecisions()).Actions {
		if len(a.Consent) == 0 || a.Sentence == "" || a.Undo == "" || a.Precondition == "" {
			t.Errorf("%s lacks consent, sentence, undo or precondition", a.ID)
		}
		for _, p := range a.Touches.Paths {
			if strings.HasPrefix(p, "/") || strings.Contains(p, "..") {
				t.Errorf("%s touches %s", a.ID, p)
			}
		}
	}
}

func TestCountGroupsThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 262144: "262,144", -1234567: "-1,234,567"} {
		if got := units.Count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
