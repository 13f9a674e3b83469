package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/installer/answers"
	"slipway/installer/apply"
)

// interrupt kills a set-up after its n-th journal write.
func (r *rig) interrupt(n int, args ...string) {
	r.t.Helper()
	env := []string{fmt.Sprintf("%s=%d:after", apply.KillVariable, n)}
	if code, _, errOut := r.run(env, args...); code != -1 {
		r.t.Fatalf("not killed: %d\n%s", code, errOut)
	}
}

type metaOf struct {
	Meta struct {
		OpenPlan *answers.OpenPlan `json:"open_plan"`
	}
	Error *answers.Error
}

func (r *rig) metaOf(args ...string) (m metaOf) {
	r.t.Helper()
	_, out, errOut := r.run(nil, args...)
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		r.t.Fatalf("%v: %v\n%s%s", args, err, out, errOut)
	}
	return m
}

// After an interrupted set-up every verb prints the one command that continues it, with the flags that it was begun
// with, and so does every document. The command works as it is printed, and then no verb speaks of it any more.
func TestEveryVerbPrintsTheCommandThatContinuesAnInterruptedSetUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.interrupt(5, r.setupArgs("--yes", "--limit-rate", "90MB", "--disk-cache", "off")...)
	var want []string
	for name := range leafVerbs(t) {
		document := r.metaOf(verbLine(name, "--json")...)
		if homeless[name] != "" {
			continue
		}
		if document.Meta.OpenPlan == nil {
			t.Errorf("%s: the document does not know the open plan", name)
			continue
		}
		if want == nil {
			want = document.Meta.OpenPlan.Continue
		}
		if got := document.Meta.OpenPlan.Continue; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if e := document.Error; e != nil && len(e.Next) > 1 && (e.Next[1] == "setup" || e.Next[1] == "up") &&
			!slices.Equal(e.Next, want) {
			t.Errorf("%s: its next step is another: %q", name, e.Next)
		}
		_, out, errOut := r.run(nil, verbLine(name)...)
		if n := strings.Count(out+errOut, shellWords(want)); n != 1 {
			t.Errorf("%s prints the command %d times\n%s%s", name, n, out, errOut)
		}
	}
	line := strings.Join(want, " ")
	for _, flag := range []string{"setup", fmt.Sprintf("--port %d", r.port),
		fmt.Sprintf("--monitor-port %d", r.monitor), "--limit-rate 90MB", "--disk-cache off",
		"--model pocket", "--home " + r.home} {
		if !strings.Contains(line, flag) {
			t.Errorf("%s is not in %q", flag, want)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	if code, _, errOut := r.run(nil, want[1:]...); code != 0 || !strings.Contains(errOut, "Continuing") {
		t.Fatalf("the printed command: %d\n%s", code, errOut)
	}
	for _, name := range []string{"status", "doctor", "models list"} {
		if m := r.metaOf(verbLine(name, "--json")...); m.Meta.OpenPlan != nil {
			t.Errorf("%s still names %v", name, m.Meta.OpenPlan)
		}
	}
}

// Where nothing is set up yet, doctor and plan look at what was begun: same plan, same ports.
func TestDoctorAndPlanLookAtTheSetUpThatWasBegun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.interrupt(5, r.setupArgs("--yes")...)
	open := r.metaOf("status", "--json").Meta.OpenPlan
	if open == nil {
		t.Fatal("no plan is open")
	}
	for _, verb := range []string{"doctor", "plan"} {
		_, out, _ := r.run(nil, verb, "--json")
		var looked struct{ Data struct{ Digest string } }
		if err := json.Unmarshal([]byte(out), &looked); err != nil || looked.Data.Digest != open.Digest {
			t.Errorf("%s looks at another plan (%v):\n%s", verb, err, out)
		}
	}
}

// Who starts what was set up before, while a change of it waits, is told how to go on with the change.
func TestUpThatReplacesAnInterruptedChangeNamesItsCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	port := fmt.Sprint(freePort(t))
	r.interrupt(2, "setup", "--yes", "--port", port)
	code, out, errOut := r.run(nil, "up")
	if code != 0 || !strings.Contains(errOut, "setup --port "+port) {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	r.interrupt(2, "setup", "--yes", "--port", port)
	if open := r.metaOf("up", "--json").Meta.OpenPlan; open == nil ||
		!strings.Contains(strings.Join(open.Continue, " "), "setup --port "+port) {
		t.Fatalf("%v", open)
	}
}

// A plan that apply or up began is continued by apply or up.
func TestOpenPlanIsContinuedByTheVerbThatBeganIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := filepath.Join(r.dir, "p.json")
	_, out, _ := r.run(nil, append([]string{"plan", "--json", "--out", file}, r.setupArgs()[1:]...)...)
	var p struct{ Data struct{ Digest string } }
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	r.interrupt(5, "apply", "--plan", file, "--digest", p.Data.Digest)
	open := r.metaOf("logs", "--json").Meta.OpenPlan
	if open == nil || !slices.Equal(open.Continue[1:6], []string{"apply", "--plan", file, "--digest", p.Data.Digest}) {
		t.Fatalf("%v", open)
	}
	if code, _, errOut := r.run(nil, open.Continue[1:]...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	port := fmt.Sprint(freePort(t))
	r.interrupt(3, "up", "--port", port)
	open = r.metaOf("logs", "--json").Meta.OpenPlan
	if open == nil || !slices.Equal(open.Continue[1:], []string{"up", "--port", port, "--home", r.home}) {
		t.Fatalf("%v", open)
	}
	if code, out, errOut := r.run(nil, open.Continue[1:]...); code != 0 || !strings.Contains(out, ":"+port+"/") {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
}

// While another slipway works on a plan it is not interrupted.
func TestPlanThatIsWorkedOnIsNotCalledInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, _ := r.hang()
	if m := r.metaOf("status", "--json"); m.Meta.OpenPlan != nil {
		t.Errorf("%v", m.Meta.OpenPlan)
	}
	if err := os.Remove(filepath.Join(r.home, "fault")); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
}
