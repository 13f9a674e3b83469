package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// verbArguments are the arguments with which each verb gets as far as it can without changing a set-up; a test of all
// verbs fails where one has no row.
var verbArguments = map[string][]string{
	"setup": {"--dry-run"}, "plan": {}, "apply": {"--plan", "no-such-file", "--digest", "sha256:0"}, "doctor": {},
	"up": {}, "down": {}, "status": {}, "logs": {}, "wait": {}, "ask": {"Hello"}, "verify": {},
	"upgrade": {"--no-input"}, "uninstall": {"--dry-run"}, "connect": {"aider"}, "models list": {},
	"models lock": {"--model", "pocket"}, "agent prompt": {}, "schema": {"setup"}, "version": {}, "neighbors": {},
	"restore": {"--dry-run"}, "gc": {"--dry-run"}, "cache show": {}, "cache clear": {"--no-input"},
	"bundle export": {"--out", "no-such-bundle"}, "bundle import": {"--in", "no-such-bundle"}, "measure": {},
	"check needle": {}, "check ruler": {}, "check cache": {}, "check tools": {}, "check compare": {"a", "b"},
	"check all": {},
}

// homeless are the verbs that are about no home.
var homeless = map[string]string{
	"agent prompt": "a text", "schema": "a text", "version": "a text",
}

// leafVerbs are the verbs that a person can call, with their commands.
func leafVerbs(t *testing.T) map[string]*cli.Command {
	t.Helper()
	found := map[string]*cli.Command{}
	var walk func(commands []*cli.Command, path string)
	walk = func(commands []*cli.Command, path string) {
		for _, c := range commands {
			name := strings.TrimSpace(path + " " + c.Name)
			switch {
			case c.Hidden:
			case len(c.Subcommands) > 0:
				walk(c.Subcommands, name)
			default:
				found[name] = c
			}
		}
	}
	walk(newApp(&session{}).Commands, "")
	if len(found) < 30 {
		t.Fatalf("only %d verbs found", len(found))
	}
	return found
}

// Every verb has a row, and the verbs that are about no home are known.
func TestEveryVerbHasArgumentsForItsTests(t *testing.T) {
	verbs := leafVerbs(t)
	for name, command := range verbs {
		if _, ok := verbArguments[name]; !ok {
			t.Errorf("%s has no row", name)
		}
		hasHome := slices.ContainsFunc(command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "home" })
		if hasHome == (homeless[name] != "") {
			t.Errorf("%s has a home: %v", name, hasHome)
		}
	}
	for name := range verbArguments {
		if verbs[name] == nil {
			t.Errorf("there is no verb %s", name)
		}
	}
}

// verbLine is the command line of a verb with these flags in front of its arguments.
func verbLine(name string, flags ...string) []string {
	return append(append(strings.Fields(name), flags...), verbArguments[name]...)
}
