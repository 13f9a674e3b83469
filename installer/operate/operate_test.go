package operate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/machine"
	"slipway/installer/plan"
)

// caller is one without a terminal: it answers questions by itself and records what it was asked.
type caller struct {
	reply Reply
	asked []Question
	said  []string
	shown int
}

// operator acts for a caller on a home in a folder of the test.
func operator(t *testing.T, c *caller, home string) *Operator {
	t.Helper()
	source, err := filepath.Abs("../../cmd/slipway/testdata/source")
	if err != nil {
		t.Fatal(err)
	}
	return &Operator{Version: "test", Home: home, Verb: "test",
		Environment: installer.Environment{UserHome: filepath.Dir(home), WorkingDir: source, RecordedSource: source,
			ToolPath: os.Getenv("PATH"), Executable: filepath.Join(source, "slipway"), Sources: machine.System(),
			Getenv: os.Getenv},
		Caller: Caller{
			Say:      func(text string) { c.said = append(c.said, text) },
			Report:   func(apply.Event) {},
			ShowPlan: func(installer.Prepared) { c.shown++ },
			Agree: func(_ context.Context, q Question) (Reply, error) {
				c.asked = append(c.asked, q)
				return c.reply, nil
			},
			Command: func(words ...string) []string { return append([]string{"slipway"}, words...) },
		}}
}

func classOfError(err error) fault.Class {
	f, _ := fault.Of(err)
	return f.Class
}

// A program calls the verbs in turn, from nothing to a set-up and back, without flags, terminal or printer. Nothing is
// done without consent.
func TestVerbsWorkWithoutATerminal(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := &caller{}, t.Context()
	home := filepath.Join(dir, "home")
	o := operator(t, c, home)
	absent := func(when string) {
		t.Helper()
		if _, err := os.Lstat(home); err == nil {
			t.Fatalf("%s: a home was made", when)
		}
	}

	status, err := o.Status(ctx)
	if err != nil || !status.NoHome || status.Class() != fault.NotReady {
		t.Fatalf("status of nothing: %+v, %v", status, err)
	}
	if _, err := o.Verify(ctx, VerifyInput{}); !errors.Is(err, apply.ErrNoHome) {
		t.Fatalf("verify of nothing: %v", err)
	}
	request := installer.Input{Request: plan.Request{Model: "pocket", Launch: false}}
	look, err := o.DryRun(ctx, SetupInput{Input: request})
	if err != nil || !look.CanApply || look.Class() != fault.ChangesPending {
		t.Fatalf("dry run: %+v, %v", look.Blockers, err)
	}
	planned, err := o.Plan(ctx, PlanInput{Input: request})
	if err != nil || planned.Digest != look.Digest {
		t.Fatalf("plan %s, dry run %s, %v", planned.Digest, look.Digest, err)
	}
	absent("looking")

	_, err = o.Setup(ctx, SetupInput{Input: request})
	needed, ok := errors.AsType[*ConsentError](err)
	if !ok || classOfError(err) != fault.Consent || needed.Plan.Digest != look.Digest {
		t.Fatalf("setup that could not ask: %v", err)
	}
	c.reply = No
	if _, err := o.Setup(ctx, SetupInput{Input: request}); !errors.Is(err, ErrDeclined) {
		t.Fatalf("setup that was declined: %v", err)
	}
	absent("without consent")

	c.reply = Yes
	done, err := o.Setup(ctx, SetupInput{Input: request})
	if err != nil || done.Digest != look.Digest || done.Changed == 0 || done.Server != nil {
		t.Fatalf("setup: %+v, %v", done, err)
	}
	if len(c.asked) != 3 || c.shown != 3 || c.asked[2].Plan == nil || c.asked[2].Plan.Plan.Digest != look.Digest {
		t.Fatalf("%d questions, the plan was shown %d times", len(c.asked), c.shown)
	}
	again, err := o.Setup(ctx, SetupInput{Input: request})
	if err != nil || again.Changed != 0 || len(c.asked) != 3 {
		t.Fatalf("setup again: %+v, %d questions, %v", again, len(c.asked), err)
	}
	if a, err := o.Verify(ctx, VerifyInput{Deep: true}); err != nil || !a.OK || a.Class() != fault.OK {
		t.Fatalf("verify: %+v, %v", a, err)
	}
	if a, err := o.GC(ctx, GCInput{DryRun: true}); err != nil || a.Class() != fault.OK {
		t.Fatalf("gc: %+v, %v", a, err)
	}
	if a, err := o.Down(ctx); err != nil || a.WasRunning {
		t.Fatalf("down: %+v, %v", a, err)
	}

	c.reply = No
	if _, err := o.Uninstall(ctx, UninstallInput{}); !errors.Is(err, ErrDeclined) {
		t.Fatalf("uninstall that was declined: %v", err)
	}
	if a, err := o.Verify(ctx, VerifyInput{}); err != nil || !a.OK {
		t.Fatalf("something was removed: %+v, %v", a, err)
	}
	c.reply = Yes
	if _, err := o.Uninstall(ctx, UninstallInput{}); err != nil {
		t.Fatalf("uninstall: %v", err)
	}
	absent("uninstall")
}

// A signal leaves the run open for the same command; a failure does not.
func TestPausedRunSaysThatTheSameCommandContinues(t *testing.T) {
	stopped := fault.New(fault.Fault{Class: fault.Interrupted}, "stopped")
	f, _ := fault.Of(paused(&apply.ActionError{Action: "model", Err: stopped}))
	if f.Class != fault.Interrupted || f.Step != fault.Continue {
		t.Errorf("a stopped run is %v, %q", f.Class, f.Step)
	}
	failed := &apply.ActionError{Action: "model", Err: errors.New("broken")}
	if paused(failed) != error(failed) {
		t.Error("a failed run counts as paused")
	}
}
