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
