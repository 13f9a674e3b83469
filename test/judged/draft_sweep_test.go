package main

import (
	"math"
	"strings"
	"testing"

	"slipway/checks/compare"
	"slipway/checks/suite"
)

func TestDraftSweepComparesEveryNumberOfTokens(t *testing.T) {
	at := pocket(t, "--draft", "mtp", "--window", "4096")
	a, code := document[suite.SweepAnswer](t, "measure --draft-sweep", "--url", at, "--max-tokens", "40", "--repeat",
		"1")
	sweep := a.Sweep
	if code != 0 || sweep.Draft != "mtp" || sweep.InForce != 1 || len(sweep.Rows) != 5 {
		t.Fatalf("exit code %d, %+v", code, sweep)
	}
	for n, row := range sweep.Rows {
		if row.Tokens != n || row.Rate <= 0 || row.Gain <= 0 || len(row.Texts) != len(suite.SweepTexts()) {
			t.Errorf("row %d: %+v", n, row)
		}
		if drafts := row.Acceptance != nil; drafts != (n > 0) || (row.TokensPerPass > 1) != (n > 0) {
			t.Errorf("row %d: %+v", n, row)
		}
		for _, text := range row.Texts {
			if !text.Same || text.Tokens < 17 {
				t.Errorf("row %d, %s: %+v", n, text.Name, text)
			}
		}
	}
	if first := sweep.Rows[0]; first.Gain != 1 {
		t.Errorf("without a draft the gain is %v", first.Gain)
	}
	gain := math.Inf(-1)
	for _, row := range sweep.Rows[1:] {
		gain = max(gain, row.Gain)
	}
	if best := sweep.Rows[sweep.Best].Gain; sweep.Best > 0 && best != gain || sweep.Best == 0 && gain >= 1.03 {
		t.Errorf("the best is %d, and the gains are up to %.3f", sweep.Best, gain)
	}
}

func TestDraftSweepIsRefusedWithoutADraft(t *testing.T) {
	plain, drafts := pocket(t), pocket(t, "--draft", "mtp")
	o := slipway(t, nil, "measure", "--draft-sweep", "--url", plain)
	if o.code != 2 || o.out != "" || !strings.Contains(o.errOut, "no draft loaded") {
		t.Error(o)
	}
	for _, args := range [][]string{{"--fresh"}, {"--keep"}, {"--max-tokens", "8"}, {"--repeat", "101"}} {
		args = append([]string{"measure", "--draft-sweep", "--url", drafts}, args...)
		if o := slipway(t, nil, args...); o.code != 2 {
			t.Errorf("%v: %v", args, o)
		}
	}
}

// Greedy answers with a draft are those without: the comparison of a server with itself finds every answer alike.
func TestCompareFindsDraftedAnswersTheSame(t *testing.T) {
	at := pocket(t, "--draft", "mtp", "--window", "4096")
	a, code := document[suite.CompareAnswer](t, "check compare", "--draft-tokens", "0", "--draft-tokens-b", "3",
		"--lengths", "600", "--samples", "1", "--out", t.TempDir(), at, at)
	if code != 0 || a.Tasks < 3 || a.Same != a.Tasks || a.Decision != compare.Identical {
		t.Errorf("exit code %d, %+v", code, a)
	}
	if a.A.Setup.Options["draft_tokens"] != "0" || a.B.Setup.Options["draft_tokens"] != "3" {
		t.Errorf("the runs do not say how they were drafted: %v, %v", a.A.Setup.Options, a.B.Setup.Options)
	}
	if o := slipway(t, nil, "check", "compare", "--draft-tokens-b", "9", "--lengths", "600", "--samples", "1",
		"--out", t.TempDir(), at, at); o.code == 0 || !strings.Contains(o.errOut, "at most") {
		t.Error(o)
	}
}
