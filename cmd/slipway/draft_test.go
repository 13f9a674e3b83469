package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"slipway/installer/apply"
	"slipway/wire"
)

// Set-up measures the draft and says so; what it keeps is in force after a restart, also where it is another number,
// and a second set-up measures nothing.
func TestSetupMeasuresTheDraftOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	env := r.realServer()
	setUp := func() (out, errOut string) {
		t.Helper()
		code, out, errOut := r.run(env, r.setupArgs("--yes", "--profile", "balanced")...)
		if code != 0 {
			t.Fatalf("%d\n%s%s", code, out, errOut)
		}
		return out, errOut
	}
	first, _ := setUp()
	file := filepath.Join(r.home, filepath.FromSlash(apply.DraftPath))
	kept, err := os.ReadFile(file)
	if err != nil || !regexp.MustCompile(`(?m)^Draft: +Drafting with mtp`).MatchString(first) {
		t.Fatalf("%v\n%s", err, first)
	}
	var doc struct {
		Measured struct{ Tokens int }
	}
	if err := json.Unmarshal(kept, &doc); err != nil || r.draftTokens() != doc.Measured.Tokens {
		t.Fatalf("%v: %d tokens are drafted at a time, and kept is\n%s", err, r.draftTokens(), kept)
	}
	other := (doc.Measured.Tokens + 1) % 5
	kept = bytes.Replace(kept, fmt.Appendf(nil, `"tokens": %d`, doc.Measured.Tokens),
		fmt.Appendf(nil, `"tokens": %d`, other), 1)
	if err := os.WriteFile(file, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range [][]string{{"down"}, {"up"}} {
		if code, out, errOut := r.run(env, verb...); code != 0 {
			t.Fatalf("%v: %d\n%s%s", verb, code, out, errOut)
		}
	}
	if n := r.draftTokens(); n != other {
		t.Errorf("%d tokens are drafted at a time after a restart, and %d are kept", n, other)
	}
	out, errOut := setUp()
	if strings.Contains(errOut, "Measuring") || !strings.Contains(out, "Draft: ") || r.draftTokens() != other {
		t.Errorf("a second set-up: %s%s", out, errOut)
	}
	// A damaged note is measured again.
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errOut := setUp(); !strings.Contains(errOut, "Measuring") {
		t.Errorf("with a damaged note: %s", errOut)
	}
	if code, out, errOut := r.run(env, "uninstall", "--yes"); code != 0 {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
	if _, err := os.Stat(r.home); !os.IsNotExist(err) {
		t.Errorf("the home stays: %v", err)
	}
}

// draftTokens is how many tokens the running server drafts at a time.
func (r *rig) draftTokens() int {
	r.t.Helper()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/slipway/requests", r.port))
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	var now wire.Watching
	if err := json.NewDecoder(response.Body).Decode(&now); err != nil {
		r.t.Fatal(err)
	}
	return now.Server.DraftTokens
}
