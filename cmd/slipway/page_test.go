package main

import (
	"bytes"
	"fmt"
	"testing"
)

// Words wrap and hang behind their label; a command that is there to be copied stays on one line, as in a pipe.
func TestWordsWrapAndCommandsStayWhole(t *testing.T) {
	for _, row := range []struct {
		columns    int
		line, want string
	}{
		{20, "Note: one two three four", "Note: one two three\n      four"},
		{20, "  1. one two three four", "  1. one two three\n     four"},
		{20, "    one two three four", "    one two three\n    four"},
		{56, "ok        space            one two three four five six seven",
			"ok        space            one two three four five six\n                           seven"},
		{20, "one two three four five", "one two three four\nfive"},
		{20, "Next: slipway setup --port 8018", "Next: slipway setup --port 8018"},
		{20, "Do exactly this: slipway apply --plan p.json", "Do exactly this: slipway apply --plan p.json"},
		{20, "  slipway setup --port 8018", "  slipway setup --port 8018"},
		{0, "one two three four five", "one two three four five"},
		{20, "a\x1b[31mb", "a\uFFFD[31mb"},
	} {
		var out bytes.Buffer
		n, err := fmt.Fprintln(printable{&out, row.columns, "slipway"}, row.line)
		if err != nil || n != len(row.line)+1 || out.String() != row.want+"\n" {
			t.Errorf("%q in %d columns: %q, %d, %v", row.line, row.columns, out.String(), n, err)
		}
	}
}

// A command in a sentence is one that can be pasted, however this program was started, and every verb is known.
func TestCommandsInSentencesCanBePasted(t *testing.T) {
	const goRun = "go run ./cmd/slipway"
	for line, want := range map[string]string{
		"To undo it, run slipway uninstall.":   "To undo it, run " + goRun + " uninstall.",
		"(slipway models list) slipway --help": "(" + goRun + " models list) " + goRun + " --help",
		"Next: " + goRun + " setup --yes":      "Next: " + goRun + " setup --yes",
		"slipway: what slipway upholds":        "slipway: what slipway upholds",
		"in '/x/slipway setup'":                "in '/x/slipway setup'",
	} {
		if got := (printable{program: goRun}).ownCommands(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
		if got := (printable{program: "slipway"}).ownCommands(line); got != line {
			t.Errorf("%q became %q", line, got)
		}
	}
	for name := range leafVerbs(t) {
		if !named.MatchString("slipway " + name) {
			t.Errorf("%s is not known as a command of ours", name)
		}
	}
}
