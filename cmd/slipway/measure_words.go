package main

import (
	"fmt"
	"io"
	"strings"

	"slipway/checks/client"
	"slipway/checks/measure"
	"slipway/checks/suite"
	"slipway/termtext"
	"slipway/units"
)

// measureStage says what is about to be sent, before a wait that may be long.
func (s *session) measureStage(stage measure.Stage) {
	if stage.Run == 0 {
		s.say("The text is long: its first 3 KiB are read first, to tell how long the whole may take.")
		return
	}
	if f := stage.Forecast; f != nil {
		s.say("%s", forecastWords(f))
	}
	if stage.Of > 1 {
		s.say("Run %d of %d.", stage.Run, stage.Of)
	}
}

func forecastWords(f *measure.Forecast) string {
	if f.Why != "" {
		return sentence(f.Why)
	}
	text := fmt.Sprintf("%s of about %s tokens takes at least about %s to read when nothing of it is cached: %s "+
		"tokens took %s just now, and long prompts are read more slowly.",
		"A prompt", units.Count(f.PromptTokens), measure.Seconds(f.PrefillSeconds), units.Count(f.ProbeTokens),
		measure.Seconds(f.ProbeSeconds))
	for _, t := range f.Exceeds {
		text += fmt.Sprintf(" That is longer than the %.0f s that %s waits for a whole answer unless it is set "+
			"otherwise.",
			t.Seconds, t.Client)
	}
	if len(f.Exceeds) > 0 {
		text += " slipway connect prints settings that wait longer."
	} else {
		text += " No client that we know of gives up before that."
	}
	if f.OverWindow > 0 {
		text += fmt.Sprintf(" The server's window is %s tokens: it will refuse this prompt.", units.Count(f.OverWindow))
	}
	return text
}

func printMeasure(w io.Writer, a suite.MeasureAnswer) {
	r := a.Result
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-16s %s\n", name, termtext.Line(fmt.Sprintf(format, args...)))
	}
	line("text", "%s, %s bytes, SHA-256 %s", a.Text.Name, units.Count(a.Text.Bytes), a.Text.SHA256)
	line("server", "%s", serverWords(r.URL, r.Server))
	if r.Fresh != "" {
		line("fresh", "%s", r.Fresh)
	}
	for _, member := range r.Left {
		line("left out", "%s, which the server refuses", member)
	}
	for i, run := range r.Runs {
		if len(r.Runs) > 1 {
			fmt.Fprintf(w, "\nrun %d\n", i+1)
		} else {
			fmt.Fprintln(w)
		}
		printRun(w, run)
		if run.Thinking+run.Answer != "" {
			fmt.Fprintf(w, "\n%s\n", termtext.Text(strings.TrimSpace(run.Thinking+"\n"+run.Answer)))
		}
	}
	if len(r.Summary) > 0 {
		fmt.Fprintf(w, "\nover the runs\n")
	}
	for _, sp := range r.Summary {
		fmt.Fprintf(w, "  %-15s median %s, least %s, most %s  (%s's, %d %s runs)\n", rowNames[sp.Name],
			measured(sp.Name, sp.Median), measured(sp.Name, sp.Least), measured(sp.Name, sp.Most), sp.Whose, sp.Runs,
			sp.Group)
	}
}

func serverWords(url string, d client.Identity) string {
	text := url + ", model " + d.Model
	if d.Revision != "" {
		text += ", revision " + d.Revision[:min(12, len(d.Revision))]
	}
	if d.WindowTokens > 0 {
		text += fmt.Sprintf(", window %s tokens", units.Count(d.WindowTokens))
	}
	if d.PrefillPolicy != "" && d.PrefillPolicy != "exact" {
		text += ", prefill policy " + d.PrefillPolicy + " (an approximation)"
	}
	return text
}

// rowNames are the words of the numbers.
var rowNames = map[string]string{
	"prompt_tokens": "prompt", "cached_tokens": "  cached", "computed_tokens": "  computed", "queue_seconds": "queue",
	"prefill_seconds":           "prefill",
	"prefill_tokens_per_second": "prefill rate", "first_token_seconds": "first token",
	"decode_tokens_per_second": "decode rate",
	"completion_tokens":        "answer", "total_seconds": "whole request",
}

func measured(name string, v float64) string {
	switch {
	case strings.HasSuffix(name, "per_second") && v >= 100:
		return fmt.Sprintf("%.0f tokens/s", v)
	case strings.HasSuffix(name, "per_second"):
		return fmt.Sprintf("%.1f tokens/s", v)
	}
	return measure.Seconds(v)
}

// printRun prints one line a number: what, how much, whose, and on what it rests; or why it is not there.
func printRun(w io.Writer, r measure.Run) {
	row := func(name, value, rests string) {
		if why, absent := r.Absent[name]; absent {
			fmt.Fprintf(w, "  %-15s %16s  %-6s  %s\n", rowNames[name], "-", "", termtext.Line(why))
		} else if value != "" {
			fmt.Fprintf(w, "  %-15s %16s  %-6s  %s\n", rowNames[name], value, r.Whose[name], termtext.Line(rests))
		}
	}
	count := func(n *int) string {
		if n == nil {
			return ""
		}
		return units.Count(*n) + " tokens"
	}
	number := func(name string, v *float64) string {
		if v == nil {
			return ""
		}
		return measured(name, *v)
	}
	cache := "how much was cached is not known"
	if r.Cached != nil && r.Prompt != nil {
		cache = fmt.Sprintf("with %s of %s tokens cached", units.Count(*r.Cached), units.Count(*r.Prompt))
	}
	row("prompt_tokens", count(r.Prompt), "")
	row("cached_tokens", count(r.Cached), "")
	row("computed_tokens", count(r.Computed), "")
	row("queue_seconds", number("queue_seconds", r.Queue), "")
	row("prefill_seconds", number("prefill_seconds", r.Prefill), cache)
	rests := "of the whole prompt, which --fresh made new"
	if r.Computed != nil {
		rests = fmt.Sprintf("of the %s computed tokens", units.Count(*r.Computed))
	}
	if r.Whose["prefill_tokens_per_second"] == "client" {
		rests += ", queue and network included"
	}
	row("prefill_tokens_per_second", number("prefill_tokens_per_second", r.PrefillRate), rests)
	row("first_token_seconds", number("first_token_seconds", r.FirstToken), cache)
	row("decode_tokens_per_second", number("decode_tokens_per_second", r.DecodeRate),
		"over the stream, without the first token")
	row("completion_tokens", count(r.Completion), fmt.Sprintf("came in %s pieces; ended: %s", units.Count(r.Pieces),
		r.FinishReason))
	row("total_seconds", number("total_seconds", &r.Total), "")
	if r.Notice != "" {
		fmt.Fprintf(w, "  the server says: %s\n", termtext.Line(r.Notice))
	}
	for _, d := range r.Doubts {
		fmt.Fprintf(w, "  WRONG: %s\n", termtext.Line(d.Why))
	}
}
