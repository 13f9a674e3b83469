package main

import (
	"bytes"
	"fmt"
	"testing"

	"slipway/installer/answers"
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
		n, err := fmt.Fprintln(printable{to: &out, columns: row.columns, program: "slipway"}, row.line)
		if err != nil || n != len(row.line)+1 || out.String() != row.want+"\n" {
			t.Errorf("%q in %d columns: %q, %d, %v", row.line, row.columns, out.String(), n, err)
		}
	}
}

// Every verb is known as a command where a sentence names it.
func TestEveryVerbIsKnownInSentences(t *testing.T) {
	says := answers.Spelling{Program: "go run ./cmd/slipway"}
	for name := range leafVerbs(t) {
		if got, want := says.Sentence("run slipway "+name), "run go run ./cmd/slipway "+name; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
