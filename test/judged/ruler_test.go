package main

import (
	"strings"
	"testing"

	"slipway/checks/record"
)

// Pocket's variable tracking is reported as it is: nothing is asserted of the score. The texts must have the length
// that the report says, and every answer its place.
func TestRulerReportsPocketAsItIs(t *testing.T) {
	t.Parallel()
	args := []string{"--lengths", "1024", "--samples", "3", "--tasks", "vt,fwe", "--max-tokens", "160"}
	if soak() {
		args = []string{"--lengths", "2048,4096", "--samples", "25", "--max-tokens", "160"}
	}
	r, code := document[record.Report](t, "check ruler", append([]string{"--url", pocket(t), "--out", t.TempDir()},
		args...)...)
	if code != 0 || len(r.Scores) == 0 || len(r.Doubts) > 0 {
		t.Fatalf("exit code %d, %+v", code, r)
	}
	for _, s := range r.Scores {
		t.Logf("%+v", s)
	}
	_, answers, err := record.Read(r.Answers)
	if err != nil || len(answers) != r.Setup.Samples*len(r.Scores) {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	for _, a := range answers {
		length := 1024
		if soak() {
			continue
		}
		if total := a.Usage.Prompt + r.Setup.MaxTokens; total > length || total < length*8/10 {
			t.Errorf("%s has %d tokens with its answer, not %d", a.Task, total, length)
		}
	}
	if !strings.Contains(strings.Join(r.Notes, " "), "RULER has essays there") {
		t.Errorf("what differs from the publication is not said: %v", r.Notes)
	}
}

// A length that no task fits into is a mistake of the command line, not a score of nothing.
func TestRulerRefusesALengthThatNothingFitsInto(t *testing.T) {
	t.Parallel()
	o := slipway(t, nil, "check", "ruler", "--url", double(t, "honest"), "--out", t.TempDir(), "--lengths", "300",
		"--tasks", "cwe")
	if o.code != 2 || !strings.Contains(o.errOut, "does not fit into 300 tokens") {
		t.Fatal(o)
	}
	o = slipway(t, nil, "check", "ruler", "--url", double(t, "narrow"), "--out", t.TempDir(), "--lengths", "4k")
	if o.code != 2 || !strings.Contains(o.errOut, "beyond the server's window of 700") {
		t.Fatal(o)
	}
}
