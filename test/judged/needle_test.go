package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/checks/record"
)

// soak reports whether the long form is asked for.
func soak() bool { return os.Getenv("SLIPWAY_SOAK") != "" }

// Pocket finds what it was trained to find: at least 0.95 of four codes a text. The long form has 50 texts at each of
// 600, 1,400 and 3,600 tokens.
func TestPocketFindsTheCodes(t *testing.T) {
	t.Parallel()
	lengths, samples := "600,1400", "5"
	if soak() {
		lengths, samples = "600,1400,3600", "50"
	}
	r, code := document[record.Report](t, "check needle", "--url", pocket(t), "--out", t.TempDir(), "--lengths",
		lengths, "--samples", samples,
		"--max-tokens", "128", "--at-least", "0.95")
	for _, s := range r.Scores {
		t.Logf("%+v", s)
		if s.Of < 5 || s.Share < 0.95 && s.Name != "texts with every code found" {
			t.Errorf("%+v", s)
		}
	}
	if code != 0 || len(r.Doubts) > 0 {
		t.Errorf("exit code %d, %v", code, r.Doubts)
	}
	setup := r.Setup
	if setup.Seed != 1 || setup.Template == "" || setup.MaxTokens != 128 || setup.Scoring == "" || setup.Tokens == "" {
		t.Errorf("the setup is not recorded: %+v", setup)
	}
	_, answers, err := record.Read(r.Answers)
	if err != nil || len(answers) != setup.Samples*len(setup.Lengths) {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	for _, a := range answers {
		if a.Text == "" || a.Usage == nil || a.Usage.Prompt > a.Parts[0].Length*102/100 ||
			a.Usage.Prompt < a.Parts[0].Length*90/100 {
			t.Errorf("%s: %+v", a.Task, a.Usage)
		}
	}
}

// A model that finds half must not look better, however the codes are asked for.
func TestNeedleSeesAModelThatForgets(t *testing.T) {
	t.Parallel()
	at := double(t, "forgetful")
	out := t.TempDir()
	r, code := document[record.Report](t, "check needle", "--url", at, "--out", out, "--lengths", "600,1200",
		"--samples", "4", "--at-least", "0.95")
	for _, s := range r.Scores {
		if s.Name == "texts with every code found" && s.Hits != 0 || s.Name != "texts with every code found" &&
			s.Share != 0.5 {
			t.Errorf("%+v", s)
		}
	}
	if code != 21 {
		t.Errorf("exit code %d below --at-least", code)
	}
	if raw, err := os.ReadFile(r.Picture); err != nil || !strings.HasPrefix(string(raw), "\x89PNG") {
		t.Errorf("no picture: %v", err)
	}
	r, _ = document[record.Report](t, "check needle", "--url", double(t, "honest"), "--out", out, "--lengths", "600",
		"--samples", "2", "--grid", "3")
	if len(r.Scores) != 1 || r.Scores[0].Hits != 6 || r.Scores[0].Of != 6 || !strings.Contains(r.Text, "66-100 %") {
		t.Errorf("%+v\n%s", r.Scores, r.Text)
	}
	r, _ = document[record.Report](t, "check needle", "--url", double(t, "tokenizer"), "--out", out, "--lengths", "600",
		"--samples", "1")
	if r.Setup.Tokens != "by the server's /tokenize" {
		t.Errorf("tokens counted %s", r.Setup.Tokens)
	}
	r, _ = document[record.Report](t, "check needle", "--url", double(t, "no-usage"), "--out", out, "--lengths", "600",
		"--samples", "1")
	if !strings.Contains(r.Setup.Tokens, "rough") || !strings.Contains(strings.Join(r.Notes, " "), "is unknown") {
		t.Errorf("tokens counted %s, %v", r.Setup.Tokens, r.Notes)
	}
}

// A killed run leaves no file under its final name. It continues with its own setup and with no other.
func TestKilledRunGoesOnAndIsNotOfficial(t *testing.T) {
	t.Parallel()
	at, out := double(t, "honest"), t.TempDir()
	args := []string{"check", "needle", "--url", at, "--out", out, "--lengths", "3000", "--samples", "60"}
	partial := filepath.Join(out, "needle.partial.jsonl")
	lines := func() int {
		raw, _ := os.ReadFile(partial)
		return strings.Count(string(raw), "\n")
	}
	cmd := exec.Command(filepath.Join(programs, "slipway"), args...)
	cmd.Env = []string{"HOME=" + out, "PATH=/usr/bin:/bin"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); lines() < 4; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no answers come")
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	had := lines() - 1
	if found, _ := filepath.Glob(filepath.Join(out, "*")); len(found) != 1 || had >= 60 {
		t.Fatalf("%v, %d answers", found, had)
	}
	if o := slipway(t, nil, append(args, "--seed", "2")...); o.code != 6 ||
		!strings.Contains(o.errOut, "seed 1 there, 2 here") || lines()-1 != had {
		t.Fatal(o)
	}
	o := slipway(t, nil, args...)
	if o.code != 0 || !strings.Contains(o.errOut, "Continuing needle") {
		t.Fatal(o)
	}
	final, _ := filepath.Glob(filepath.Join(out, "needle-*.jsonl"))
	if len(final) != 1 || lines() != 0 {
		t.Fatalf("%v", final)
	}
	_, answers, err := record.Read(final[0])
	seen := map[string]bool{}
	for _, a := range answers {
		seen[a.Task] = true
	}
	if err != nil || len(answers) != 60 || len(seen) != 60 {
		t.Fatalf("%d answers to %d tasks, %v", len(answers), len(seen), err)
	}
}

// A server that fails in the middle of a check ends it; what was answered is kept and nothing is official.
func TestCheckStopsAtAFaultOfTheServer(t *testing.T) {
	t.Parallel()
	for mode, says := range map[string]string{"cut": "without saying [DONE]", "broke-off": "the graphics " +
		"processor was lost", "html": "a web page (HTML) instead of JSON"} {
		out := t.TempDir()
		o := slipway(t, nil, "check", "needle", "--url", double(t, mode), "--out", out, "--lengths", "600", "--samples",
			"2")
		if found, _ := filepath.Glob(filepath.Join(out, "needle-*")); o.code == 0 ||
			!strings.Contains(o.errOut, says) || len(found) > 0 {
			t.Errorf("%s: %v %v", mode, o, found)
		}
	}
	r, code := document[record.Report](t, "check needle", "--url", double(t, "wrong-prompt"), "--out", t.TempDir(),
		"--lengths", "600", "--samples", "2")
	if code != 21 || len(r.Doubts) != 1 || !strings.Contains(r.Doubts[0], "cached and") {
		t.Errorf("wrong usage: exit code %d, %v", code, r.Doubts)
	}
}
