package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"slipway/installer/answers"
)

// expected is how a verb ends in a state: its exit code, and the first word of its next step; empty: none.
type expected struct {
	code int
	next string
}

// skipped is a verb that would change what the others look at.
var skipped = expected{-1, ""}

// states are the homes that a verb may meet. What is not named ends as usual.
var states = []struct {
	name  string
	make  func(r *rig)
	usual expected
	other map[string]expected
}{
	{"nothing is set up", func(*rig) {}, expected{exitNotReady, "setup"}, map[string]expected{
		"setup": {exitChanges, ""}, "plan": {exitChanges, ""}, "doctor": {exitChanges, ""}, "apply": {exitUsage, ""},
		"connect": {0, ""}, "models list": {0, ""}, "models lock": {exitUsage, ""}, "restore": {0, ""},
		"status": {exitNotReady, ""}, "down": {exitNotReady, ""}, "logs": {exitNotReady, ""},
		"uninstall": {exitNotReady, ""}, "cache show": {exitNotReady, ""}, "cache clear": {exitNotReady, ""},
		"gc": {exitNotReady, ""}, "check compare": {exitUsage, ""}, "bundle import": {exitUsage, ""},
	}},
	{"set-up was interrupted at its beginning", func(r *rig) { r.interrupt(2, r.setupArgs("--yes")...) },
		expected{exitNotReady, "setup"}, map[string]expected{
			"setup": {exitChanges, ""}, "plan": {exitChanges, ""}, "doctor": {exitChanges, ""},
			"apply": {exitUsage, ""}, "connect": {0, ""}, "models list": {0, ""}, "models lock": {exitUsage, ""},
			"restore": {0, ""}, "status": {exitNotReady, ""}, "down": {0, ""}, "logs": {0, ""},
			"wait": {exitUsage, "setup"}, "verify": {exitNotReady, ""}, "uninstall": {exitChanges, ""},
			"gc": {0, ""}, "check compare": {exitUsage, ""}, "bundle import": {exitUsage, ""},
		}},
	{"set-up was interrupted behind its settings", func(r *rig) { r.interrupt(8, r.setupArgs("--yes")...) },
		expected{exitNotReady, "setup"}, map[string]expected{
			"setup": {0, ""}, "plan": {0, ""}, "doctor": {0, ""},
			"apply": {exitUsage, ""}, "connect": {0, ""}, "models list": {0, ""}, "models lock": {exitUsage, ""},
			"restore": {0, ""}, "status": {exitNotReady, ""}, "down": {0, ""}, "logs": {0, ""},
			"wait": {exitUsage, "setup"}, "verify": {0, ""}, "uninstall": {exitChanges, ""}, "up": skipped,
			"gc": {0, ""}, "check compare": {exitUsage, ""}, "bundle import": {exitUsage, ""},
			"cache show": {0, ""}, "cache clear": {0, ""}, "bundle export": skipped, "upgrade": skipped,
		}},
	{"the server is stopped", func(r *rig) {
		if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
			r.t.Fatalf("%d\n%s", code, errOut)
		}
	}, expected{exitNotReady, "up"}, map[string]expected{
		"setup": {0, ""}, "plan": {0, ""}, "doctor": {0, ""}, "apply": {exitUsage, ""}, "connect": {0, ""},
		"models list": {0, ""}, "models lock": {exitUsage, ""}, "restore": {0, ""}, "status": {exitNotReady, ""},
		"down": {0, ""}, "logs": {0, ""}, "wait": {exitUsage, ""}, "verify": {0, ""}, "uninstall": {exitChanges, ""},
		"gc": {0, ""}, "check compare": {exitUsage, ""}, "bundle import": {0, ""}, "cache show": {0, ""},
		"cache clear": {0, ""}, "bundle export": {0, ""}, "upgrade": {exitConsent, "plan"}, "up": skipped,
	}},
	{"a receipt is damaged", func(r *rig) {
		receipts, err := filepath.Glob(filepath.Join(r.home, "state/receipts/*.json"))
		if err != nil || len(receipts) == 0 {
			r.t.Fatalf("%v, %v", receipts, err)
		}
		for _, receipt := range receipts {
			if err := os.Truncate(receipt, 40); err != nil {
				r.t.Fatal(err)
			}
		}
	}, expected{exitNotReady, "up"}, map[string]expected{
		"setup": {exitChanges, ""}, "plan": {exitChanges, ""}, "doctor": {exitChanges, ""}, "apply": {exitUsage, ""},
		"connect": {0, ""}, "models list": {0, ""}, "models lock": {exitUsage, ""}, "restore": {0, ""},
		"status": {exitDamage, ""}, "down": {0, ""}, "logs": {0, ""}, "wait": {exitUsage, ""}, "verify": {0, ""},
		"uninstall": {exitDamage, "setup"}, "gc": {exitDamage, "setup"}, "check compare": {exitUsage, ""},
		"bundle import": {0, ""}, "cache show": {0, ""}, "cache clear": {0, ""}, "bundle export": {exitStale, ""},
		"upgrade": {exitConsent, "plan"}, "up": skipped,
	}},
}

// command is one of our commands in a text, to its end.
var command = regexp.MustCompile("(?:^|[\\s(\"'`])slipway (?:setup|plan|apply|doctor|up|down|status|logs|wait|ask|verify|" +
	"upgrade|uninstall|connect|models|neighbors|restore|gc|cache|bundle|measure|check)\\b[^\n;,)`]*")

// withoutHome are the commands in a text that would act on another home.
func withoutHome(text string) (found []string) {
	for _, line := range command.FindAllString(text, -1) {
		if !strings.Contains(line, "--home ") {
			found = append(found, line)
		}
	}
	return found
}

// In every state every verb ends with the code that the state has, gives one next step that a person can paste, and
// names no command of ours in another way.
func TestEveryVerbInEveryStateGivesOneNextStep(t *testing.T) {
	r := newRig(t)
	for _, state := range states {
		state.make(r)
		for _, name := range slices.Sorted(maps.Keys(leafVerbs(t))) {
			want, ok := state.other[name]
			if !ok {
				want = state.usual
			}
			if homeless[name] != "" || name == "neighbors" || want == skipped { // neighbors asks more than this home
				continue
			}
			what := name + " where " + state.name
			code, out, errOut := r.run(nil, verbLine(name, "--json", "--home", r.home)...)
			var e answers.Envelope
			if err := json.Unmarshal([]byte(out), &e); err != nil || code != want.code || e.Meta.ExitCode != code {
				t.Errorf("%s: exit code %d, want %d (%v)\n%s%s", what, code, want.code, err, out, errOut)
				continue
			}
			var next []string
			if e.Error != nil {
				next = e.Error.Next
			}
			if want.next == "" && len(next) > 0 || want.next != "" && (len(next) < 2 || next[0] != "slipway" ||
				next[1] != want.next || !slices.Contains(next, r.home)) {
				t.Errorf("%s: the next step is %q, want %q", what, next, want.next)
			}
			if found := withoutHome(out); len(found) > 0 {
				t.Errorf("%s: %q would act on another home", what, found)
			}
		}
		for _, name := range []string{"status", "down", "uninstall", "ask", "restore"} {
			_, out, errOut := r.run(nil, verbLine(name, "--home", r.home)...)
			seen := map[string]bool{}
			for line := range strings.Lines(out + errOut) {
				if line = strings.TrimSpace(line); seen[line] {
					t.Errorf("%s where %s says twice: %s", name, state.name, line)
				}
				seen[line] = true
			}
			if len(command.FindAllString(out+errOut, -1)) > 1 || len(withoutHome(out+errOut)) > 0 {
				t.Errorf("%s where %s does not name one next step:\n%s%s", name, state.name, out, errOut)
			}
		}
	}
}
