package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slipway/checks/record"
)

func statuses(r record.Report) map[string]string {
	all := map[string]string{}
	for _, f := range r.Findings {
		all[f.ID] = f.Status
	}
	return all
}

// The real server's cache never changes an answer. Every scene must have been judged: unknown is not enough.
func TestPocketsCachePasses(t *testing.T) {
	t.Parallel()
	tokens, samples := "700", "1"
	if soak() {
		tokens, samples = "3000", "10"
	}
	r, code := document[record.Report](t, "check cache", "--url", pocket(t, "--window", "8192"), "--out", t.TempDir(),
		"--tokens", tokens, "--samples", samples)
	if code != 0 || len(r.Findings) != 12 {
		t.Errorf("exit code %d, %d findings", code, len(r.Findings))
	}
	for _, f := range r.Findings {
		if f.Status != record.Pass {
			t.Errorf("%+v", f)
		}
	}
	if len(r.Doubts) > 0 {
		t.Error(r.Doubts)
	}
}

// A server that answers from a text that is no longer there must be caught, in words that say so.
func TestCacheCheckCatchesAStaleAnswer(t *testing.T) {
	t.Parallel()
	r, code := document[record.Report](t, "check cache", "--url", double(t, "stale"), "--out", t.TempDir(), "--samples",
		"1")
	got := statuses(r)
	for _, scene := range []string{"early change", "late change", "two alike in turn", "cancelled while reading",
		"tool loop", "new data"} {
		if got[scene] != record.Fail {
			t.Errorf("%s: %s", scene, got[scene])
		}
	}
	if code != 21 || got["cold"] != record.Pass || !strings.Contains(fmt.Sprint(r.Findings), "a stale answer") {
		t.Errorf("exit code %d, %v", code, r.Findings)
	}
	for mode, scenes := range map[string][]string{"honest": nil, "no-cache": nil, "no-usage": nil, "cached-fresh": {
		"cold", "early change"}} {
		r, code := document[record.Report](t, "check cache", "--url", double(t, mode), "--out", t.TempDir(),
			"--samples", "1", "--tokens", "600")
		for scene, status := range statuses(r) {
			if want := slices.Contains(scenes, scene); (status == record.Fail) != want {
				t.Errorf("%s: %s: %s", mode, scene, status)
			}
		}
		if (code == 21) != (scenes != nil) {
			t.Errorf("%s: exit code %d", mode, code)
		}
	}
}

// A model that finds nothing must not pass for a cache that works.
func TestCacheCheckSaysWhenNothingCanBeSaid(t *testing.T) {
	t.Parallel()
	r, _ := document[record.Report](t, "check cache", "--url", double(t, "forgetful"), "--out", t.TempDir(),
		"--samples", "1", "--tokens", "600")
	if got := statuses(r); got["late change"] != record.Unknown || got["continuation"] != record.Unknown {
		t.Errorf("%v", r.Findings)
	}
}

// Each way of calling tools wrongly must be seen in its scene and in no other, and called the server's fault where it
// is.
func TestToolsCheckTellsHowCallsGoWrong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mode string
		fail []string
		says string
	}{
		{"honest", nil, ""},
		{"string-tools", []string{"every JSON type"}, `is the text "`},
		{"single-tools", []string{"two calls at once"}, "1 calls where 2 were asked for"},
		{"forgets-results", []string{"the result is used", "several turns"}, "and the answer is"},
		{"no-tools", []string{"one call", "the result is used", "several turns", "two calls at once", "every JSON type",
			"in one piece", "required"}, "0 calls where 1"},
		{"broken-tools", []string{"one call", "the result is used", "several turns", "two calls at once",
			"every JSON type", "in one piece", "required"}, "the server's fault: the arguments of get_weather are " +
			"no JSON object"},
	} {
		r, code := document[record.Report](t, "check tools", "--url", double(t, row.mode), "--out", t.TempDir(),
			"--samples", "2")
		for scene, status := range statuses(r) {
			if want := slices.Contains(row.fail, scene); (status == record.Fail) != want {
				t.Errorf("%s: %s: %s", row.mode, scene, status)
			}
		}
		if want := 0; len(row.fail) > 0 {
			want = 21
			if code != want || !strings.Contains(fmt.Sprint(r.Findings), row.says) {
				t.Errorf("%s: exit code %d, %v", row.mode, code, r.Findings)
			}
		} else if code != want || len(r.Findings) != 9 {
			t.Errorf("%s: exit code %d, %v", row.mode, code, r.Findings)
		}
	}
}

// Pocket calls the one tool that it was trained on; what it does elsewhere is reported as it is.
func TestPocketsToolCallsAreWellFormed(t *testing.T) {
	t.Parallel()
	r, _ := document[record.Report](t, "check tools", "--url", pocket(t), "--out", t.TempDir(), "--samples", "2",
		"--max-tokens", "128")
	got := statuses(r)
	for _, scene := range []string{"one call", "in one piece", "required", "forbidden"} {
		if got[scene] != record.Pass {
			t.Errorf("%s: %s", scene, got[scene])
		}
	}
	for _, f := range r.Findings {
		t.Logf("%+v", f)
		if strings.Contains(f.Why, "the server's fault") {
			t.Errorf("%+v", f)
		}
	}
}
