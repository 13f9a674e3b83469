package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/machine"
	"slipway/installer/neighbor"
	"slipway/installer/operate"
	"slipway/installer/plan"
	"slipway/termtext"
)

var update = flag.Bool("update", false, "write the golden files of the screens; then read them as a person does")

// widths are those of terminals; 0 is a pipe, where lines stay whole.
var widths = map[string]int{"60": 60, "80": 80, "120": 120, "piped": 0}

// preparedOn is what set-up would show on a recorded machine, in an empty home, with everything still to be done.
func preparedOn(t *testing.T, recording string, in installer.Input) installer.Prepared {
	t.Helper()
	name, whole := strings.CutSuffix(recording, " without a container")
	data, err := os.ReadFile(filepath.Join("../../installer/machine/testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	if whole {
		data = bytes.Replace(data, []byte("memory.max --\n4294967296"), []byte("memory.max --\nmax"), 1)
	}
	sources, err := machine.ParseRecording(data)
	if err != nil {
		t.Fatal(err)
	}
	in.Launch = false // the servers and ports of the machine under the test are not asked
	in.Home = filepath.Join(t.TempDir(), "home")
	in.Source = t.TempDir() // with nothing in it
	p, err := installer.Prepare(context.Background(), in, installer.Environment{UserHome: t.TempDir(), Sources: sources,
		Executable: "/usr/local/bin/slipway", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	p.Facts.Home = "/Users/mia/.slipway"
	d := p.Plan.Decisions
	d.Home, d.Request.Launch, d.Request.Port, d.Request.MonitorPort = "/Users/mia/.slipway", true, 8008, 8010
	if d.Model.Embedded { // its size is not what these screens are about
		d.Model.Bytes = 9_530_000
	}
	d.Engine = plan.Engine{Origin: plan.FromSource, ID: "0123456789abcdef"}
	asPlanned(&p, d, plan.World{})
	return p
}

func asPlanned(p *installer.Prepared, d plan.Decisions, w plan.World) {
	p.Plan = plan.Make(d)
	p.Plan.Digest = "sha256:3f6f0d1c2b9a"
	w.StopsDone = w.StopLines == ""
	p.Assessment = plan.Judge(p.Plan, w)
	p.StopLines, p.Contended = w.StopLines, w.Contended
}

// screen is a session whose errors go to a buffer of so many columns.
func screen(columns int) (*session, *bytes.Buffer) {
	var shown bytes.Buffer
	s := &session{ctx: context.Background(), out: &results{to: &bytes.Buffer{}}, errOut: &shown,
		invocation: []string{"slipway"}, verb: "setup", columns: columns,
		environment: installer.Environment{UserHome: "/Users/mia"}}
	s.commands = newApp(s).Commands
	s.verb = "setup"
	return s, &shown
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "screens", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; go test ./cmd/slipway -run Screen -update writes it, then read it as a person does:\n%s",
			file, got)
	}
}

// question is what stands below the plan.
const question = "Do this? [y/N] "

// shown is machine, choice, plan and question, as a program of this name prints them.
func shown(p installer.Prepared, columns int, program ...string) string {
	s, out := screen(columns)
	if program != nil {
		s.invocation = program
	}
	s.showProposal(p)
	return out.String() + question + "\n"
}

// idleNeighbor is a server that holds our port, as neighbors find it.
var idleNeighbor = neighbor.Server{Kind: "mtplx", Title: "MTPLX", Port: 8008, PID: 812, FootprintBytes: 13 << 30,
	Idle: neighbor.Idle{State: neighbor.StateIdle}, Models: []string{"mlx-community/Qwen3-4B-4bit"},
	Started: "2026-08-01T10:02:00Z"}

// withNeighborInTheWay is a plan that meets a server at its port and in its memory; stops: it was named to be stopped.
func withNeighborInTheWay(t *testing.T, stops bool) installer.Prepared {
	t.Helper()
	p := preparedOn(t, "m4-max-36", installer.Input{})
	server := idleNeighbor
	idle := 35.0
	server.IdleSeconds, server.Channel = &idle, "argv"
	conflicts := neighbor.Conflicts([]neighbor.Server{server}, neighbor.Need{Port: 9000, NeedsBytes: 27 << 30,
		AvailableBytes: 14 << 30, Smaller: &neighbor.Smaller{Model: "qwen3.5-9b-4bit", Profile: "exact", Memory: "15GB",
			WindowTokens: 196608}})
	if len(conflicts) != 1 {
		t.Fatalf("%+v", conflicts)
	}
	if !stops {
		asPlanned(&p, p.Plan.Decisions, plan.World{Contended: conflicts[0].Ways()})
		return p
	}
	d := p.Plan.Decisions
	d.Stops = []plan.StoppedServer{{Kind: server.Kind, Title: server.Title, Port: server.Port, PID: server.PID,
		Channel: "argv", Models: server.Models}}
	d.RebootAgent = "/Users/mia/Library/LaunchAgents/org.slipway.restore.plist"
	now, err := time.Parse(time.RFC3339, "2026-08-01T12:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	asPlanned(&p, d, plan.World{StopLines: conflicts[0].Why + " " + server.StopLine(now)})
	return p
}

// The screen before the question, on a small and a large Mac, on Linux, and with another server there.
func TestScreenBeforeTheQuestion(t *testing.T) {
	t.Setenv("TZ", "UTC")
	cases := map[string]installer.Prepared{
		"plan-small-mac":     preparedOn(t, "m1-16", installer.Input{}),
		"plan-mac":           preparedOn(t, "m4-max-36", installer.Input{}),
		"plan-large-mac":     preparedOn(t, "m5-max-128", installer.Input{}),
		"plan-linux":         preparedOn(t, "debian-12", installer.Input{}),
		"plan-neighbor":      withNeighborInTheWay(t, false),
		"plan-neighbor-stop": withNeighborInTheWay(t, true),
	}
	cases["plan-linux-real-model"] = preparedOn(t, "debian-12 without a container",
		installer.Input{Request: plan.Request{Model: "qwen3.5-4b-4bit"}})
	for name, p := range cases {
		for width, columns := range widths {
			golden(t, name+"."+width, shown(p, columns))
		}
	}
}

// The README shows the screen as it is today, of a Mac with 36 GB.
func TestScreenInTheReadmeIsTheScreenOfToday(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimRight(shown(preparedOn(t, "m4-max-36", installer.Input{}), 80), " \n")
	if !strings.Contains(string(readme), "```text\n"+want+"\n```\n") {
		t.Errorf("the README shows another screen than this:\n%s", want)
	}
}

// A neighbour takes one line of a terminal of 80 columns, whatever its program is called.
func TestScreenHasOneLineForEachNeighbor(t *testing.T) {
	for _, exe := range []string{"/opt/server", "/opt/" + strings.Repeat("模型", 40),
		"/opt/" + strings.Repeat("e\u0301", 90)} {
		line := neighborLine(neighbor.Server{Kind: "unknown", Port: 8000, PID: 4711, Exe: exe, FootprintBytes: 3 << 30,
			Refusal: "slipway does not know this program"})
		if n := termtext.Width(line); n > 79 || n < 60 || strings.Contains(line, "\n") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

var (
	clauses    = regexp.MustCompile(`[^,;:()\n]+`)
	binarySize = regexp.MustCompile(`[0-9] [KMGT]iB\b`)
	plainSize  = regexp.MustCompile(`[0-9] [kMGT]B\b`)
	ofMemory   = regexp.MustCompile(`memory|Metal|model takes|context need`)
	ofFiles    = regexp.MustCompile(`disk|free on|[Dd]ownload|purgeable|Write the model|more than|still needed`)
)

// Memory is written in GiB and files in GB, each in one unit, on the short and on the long screen and by doctor.
func TestScreenWritesMemoryInGiBAndFilesInGB(t *testing.T) {
	counted := 0
	for _, name := range append(slices.Collect(maps.Keys(recordedMacs)), "debian-12") {
		p := preparedOn(t, name, installer.Input{})
		long, out := screen(1000)
		long.verbose = true
		long.showProposal(p)
		text := shown(p, 1000) + out.String()
		for _, check := range p.Assessment.Checks {
			text += check.ID + " " + check.Observed + "\n" + check.ID + " " + check.Expected + "\n"
		}
		for _, clause := range clauses.FindAllString(text, -1) {
			memory, files := ofMemory.MatchString(clause), ofFiles.MatchString(clause)
			if memory == files {
				continue
			}
			if memory && plainSize.MatchString(clause) || files && binarySize.MatchString(clause) {
				t.Errorf("%s: %q", name, clause)
			}
			if plainSize.MatchString(clause) || binarySize.MatchString(clause) {
				counted++
			}
		}
	}
	if counted < 20 {
		t.Errorf("only %d sizes were looked at", counted)
	}
}

// What --verbose shows is whole: every action's sentence and every reason.
func TestScreenWithAllSentences(t *testing.T) {
	p := preparedOn(t, "m1-16", installer.Input{})
	s, out := screen(80)
	s.verbose = true
	s.showProposal(p)
	said := strings.Join(strings.Fields(out.String()), " ")
	var wanted []string
	for _, a := range p.Plan.Actions {
		wanted = append(wanted, a.Sentence)
	}
	for _, part := range append(append(wanted, p.Proposal.Reasons...), p.Plan.Digest) {
		if !strings.Contains(said, strings.Join(strings.Fields(part), " ")) {
			t.Errorf("%q is missing", part)
		}
	}
}

// The default output of set-up fits one screen of 24 lines at 80 columns on each recorded Mac and on Linux.
func TestScreenOfSetupFits24LinesAt80Columns(t *testing.T) {
	for _, name := range append(slices.Collect(maps.Keys(recordedMacs)), "debian-12") {
		for _, program := range [][]string{{"slipway"}, {"go", "run", "./cmd/slipway"}} {
			text := shown(preparedOn(t, name, installer.Input{}), 80, program...)
			if n := strings.Count(text, "\n"); n > 24 || n < 12 {
				t.Errorf("%s: %d lines\n%s", name, n, text)
			}
		}
	}
	for _, stops := range []bool{false, true} {
		text := shown(withNeighborInTheWay(t, stops), 80, "slipway")
		if n := strings.Count(text, "\n"); n > 24 {
			t.Errorf("with another server there, stopped %v: %d lines\n%s", stops, n, text)
		}
	}
}

// No line is wider than its terminal, unless it is a command, a path or an address.
func TestScreenIsNeverWiderThanTheTerminal(t *testing.T) {
	files, err := filepath.Glob("testdata/screens/*.[0-9]*.txt")
	if err != nil || len(files) < 15 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var columns int
		fmt.Sscanf(file[strings.LastIndex(strings.TrimSuffix(file, ".txt"), ".")+1:], "%d", &columns)
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSuffix(line, "\n")
			if termtext.Width(line) > columns && strings.Contains(strings.TrimSpace(line), " ") &&
				!strings.HasPrefix(strings.TrimSpace(line), "slipway ") {
				t.Errorf("%s has a line of %d columns: %s", file, termtext.Width(line), line)
			}
		}
	}
}

// film plays events against a clock of its own and gives what a terminal of so many columns shows: a moving line is
// written as it stood each time, behind "~".
type film struct {
	s   *session
	p   *progress
	out *bytes.Buffer
	now time.Time

	arrived int64 // bytes, in this run
}

func newFilm(columns int, verbose bool) *film {
	s, out := screen(columns)
	f := &film{s: s, out: out, now: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
	f.p = s.newProgress(verbose)
	f.p.moving, f.p.now = columns > 0, func() time.Time { return f.now }
	s.progress = f.p
	return f
}

func (f *film) text() string {
	return strings.ReplaceAll(strings.ReplaceAll(f.out.String(), "\r\x1b[K", "\n~"), "~\n~", "~")
}

func (f *film) action(i, n int, id string) {
	f.p.report(apply.Event{Kind: "action", Action: id, Index: i, Count: n, Text: "a long sentence of the plan"})
}

func (f *film) waits(id, text, usual string, seconds ...int) {
	for _, second := range seconds {
		f.p.report(apply.Event{Kind: "waiting", Action: id, Text: text, Usual: usual, Seconds: second})
	}
}

// downloads brings bytes at a speed, a look a second.
func (f *film) downloads(from, to, total, perSecond int64) {
	for at := from; ; at = min(at+perSecond, to) {
		f.p.report(apply.Event{Kind: "progress", Action: "model", Path: "model-00001-of-00002.safetensors",
			DoneBytes: at,
			AllBytes:  total, TotalDoneBytes: at, TotalBytes: total, ArrivedBytes: f.arrived})
		if at == to {
			return
		}
		f.now, f.arrived = f.now.Add(time.Second), f.arrived+min(perSecond, to-at)
	}
}

// The steps of a set-up on a Mac, with a compiler, a hub and a server that take their time.
func TestScreenWhileItWorks(t *testing.T) {
	for width, columns := range widths {
		f := newFilm(columns, false)
		f.action(1, 6, "list")
		f.waits("list", "Waiting for huggingface.co", "", 1, 2, 3)
		f.p.report(apply.Event{Kind: "note", Action: "list", Text: "7 files, 480 MB, every hash proven."})
		f.action(2, 6, "home")
		f.action(3, 6, "model")
		f.downloads(0, 480e6, 480e6, 40e6)
		f.p.report(apply.Event{Kind: "done", Action: "model"})
		f.action(4, 6, "engine")
		f.waits("engine", "Compiling the server", "up to 3 min", 1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 40, 60, 75, 100)
		f.p.report(apply.Event{Kind: "done", Action: "engine"})
		f.action(5, 6, "settings")
		f.action(6, 6, "launch")
		f.waits("launch", "Loading the model", "up to 16 s", 1, 2, 3, 4, 8, 9)
		f.p.report(apply.Event{Kind: "done", Action: "launch"})
		f.waits("", "Waiting for the first answer", "", 1, 2, 3)
		f.p.end()
		golden(t, "progress."+width, f.text())
	}
}

// A download that a network breaks off, continued later, and stopped by Ctrl-C.
func TestScreenOfAnInterruptedDownload(t *testing.T) {
	for width, columns := range widths {
		f := newFilm(columns, false)
		f.s.given = [][]string{{"--home", "/Volumes/Models of Mia/slipway"}, {"--port", "8018"}}
		f.action(3, 6, "model")
		f.downloads(6_000_000_000, 6_300_000_000, 16_000_000_000, 30_000_000)
		f.p.report(apply.Event{Kind: "note", Action: "model",
			Text: "The connection to cdn.example broke: unexpected EOF. Trying again (2 of 5)."})
		f.downloads(6_300_000_000, 6_360_000_000, 16_000_000_000, 30_000_000)
		f.s.finish(&apply.ActionError{Action: "model", Err: &hub.NetworkError{URL: "https://cdn.example/model",
			Path: "model-00001-of-00002.safetensors", Attempts: 5, Arrived: 6_360_000_000, Bytes: 16_000_000_000,
			Err: errors.New("no route to host")}})
		again := newFilm(columns, false)
		again.s.given = f.s.given
		again.p.report(apply.Event{Kind: "note", Text: "Continuing the plan sha256:3f6f0d1c2b9a that was " +
			"begun before."})
		again.action(3, 6, "model")
		again.downloads(6_360_000_000, 6_480_000_000, 16_000_000_000, 30_000_000)
		again.s.finish(&operate.PausedError{Err: &stopError{fault.Interrupted, "Ctrl-C"}})
		golden(t, "interrupted."+width, f.text()+"\n"+again.text())
	}
}
