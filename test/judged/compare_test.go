package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/checks/compare"
	"slipway/checks/record"
)

type compared struct {
	Decision compare.Decision
	Tasks    int
	P        float64
	ABetter  int `json:"a_better"`
	BBetter  int `json:"b_better"`
}

// A server that finds half must come out worse than one that finds all, in whatever order, and never against itself.
func TestCompareTellsTheWorseServer(t *testing.T) {
	t.Parallel()
	good, bad := double(t, "honest"), double(t, "forgetful")
	flags := []string{"--lengths", "2048", "--samples", "8", "--max-tokens", "128"}
	for _, row := range []struct {
		a, b string
		want compare.Decision
		code int
	}{{good, bad, compare.Worse, 21}, {bad, good, compare.Better, 0}, {good, double(t, "honest"), compare.Identical,
		0}} {
		c, code := document[compared](t, "check compare", append(append([]string{"--out", t.TempDir()}, flags...),
			row.a, row.b)...)
		if c.Decision != row.want || code != row.code || c.Tasks != 32 {
			t.Errorf("want %q and exit code %d, got %d, %+v", row.want, row.code, code, c)
		}
	}
	if o := slipway(t, nil, append(append([]string{"check", "compare", "--out", t.TempDir()}, flags...), good,
		double(t, "cut"))...); o.code != 21 || !strings.Contains(o.errOut, "without saying [DONE]") {
		t.Error(o)
	}
	if o := slipway(t, nil, "check", "compare", good, "file.jsonl"); o.code != 2 {
		t.Error(o)
	}
}

// Two profiles of one server are compared by the files of two finished runs; runs that asked something else are not.
func TestCompareOfFinishedRuns(t *testing.T) {
	t.Parallel()
	good, bad, out := double(t, "honest"), double(t, "forgetful"), t.TempDir()
	run := func(at, name, seed string) string {
		t.Helper()
		r, _ := document[record.Report](t, "check needle", "--url", at, "--out", out, "--lengths", "600", "--samples",
			"8", "--name", name, "--seed", seed)
		return r.Answers
	}
	a, b, other := run(good, "a", "1"), run(bad, "b", "1"), run(good, "other", "2")
	if c, code := document[compared](t, "check compare", a, b); c.Decision != compare.Worse || code != 21 ||
		c.ABetter != 8 {
		t.Errorf("exit code %d, %+v", code, c)
	}
	if o := slipway(t, nil, "check", "compare", a, other); o.code != 6 || !strings.Contains(o.errOut, "seed 1 and 2") {
		t.Error(o)
	}
	// A run that is not finished has no official name, and is not compared.
	raw, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	partial := filepath.Join(out, "x.partial.jsonl")
	if err := os.WriteFile(partial, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := slipway(t, nil, "check", "compare", a, partial); o.code != 10 ||
		!strings.Contains(o.errOut, "not finished") {
		t.Error(o)
	}
}

// The report card fits a screen, says that it is no score, and takes the name of no whole run.
func TestQuickReportCardFitsAScreen(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	o := slipway(t, nil, "check", "all", "--quick", "--url", double(t, "honest"), "--out", out)
	lines := strings.Split(strings.TrimSpace(o.out), "\n")
	if o.code != 0 || len(lines) > 24 || !strings.Contains(lines[0], "an impression, no score") {
		t.Fatal(o)
	}
	for _, line := range lines {
		if len(line) > 140 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, words := range []string{"speed    first token", "needle   600 tokens", "ruler    niah_multikey_2",
		"cache    12 of 12 pass", "tools    9 of 9 pass"} {
		if !strings.Contains(o.out, words) {
			t.Errorf("no %q", words)
		}
	}
	found, err := filepath.Glob(filepath.Join(out, "*.jsonl"))
	if err != nil || len(found) != 4 {
		t.Fatalf("%v %v", found, err)
	}
	for _, f := range found {
		if !strings.Contains(f, "-quick-") {
			t.Errorf("a quick run is called %s", f)
		}
	}
	if _, code := document[struct{ Quick bool }](t, "check all", "--quick", "--url", double(t, "stale"), "--out",
		out); code != 21 {
		t.Errorf("a stale answer ends with %d", code)
	}
}
