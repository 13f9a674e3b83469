package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"slipway/checks/record"
	"slipway/termtext"
)

func printReport(w io.Writer, r record.Report) {
	fmt.Fprintf(w, "%s of %s at %s%s\n", r.Setup.Check, termtext.Line(r.Setup.Model), r.Setup.URL, quickWord(r.Setup))
	fmt.Fprintf(w, "  seed %d, %d samples, answers up to %d tokens, tokens counted %s\n", r.Setup.Seed, r.Setup.Samples,
		r.Setup.MaxTokens, orNone(r.Setup.Tokens))
	if policy := r.Setup.Options["prefill_policy"]; policy != "" && policy != "exact" {
		fmt.Fprintf(w, "  prefill policy %s: an approximation\n", termtext.Line(policy))
	}
	judgedNames := map[string]string{}
	for _, f := range r.Findings {
		judgedNames[f.ID] = ""
	}
	for _, score := range r.Scores {
		if _, judged := judgedNames[score.Name]; judged {
			judgedNames[score.Name] = fmt.Sprintf("%d of %d (%.0f to %.0f %%)", score.Hits, score.Of, score.Low*100,
				score.High*100)
		} else {
			fmt.Fprintf(w, "  %s\n", scoreWords(score))
		}
	}
	for _, f := range r.Findings {
		fmt.Fprintf(w, "  %-8s %-25s %s\n", f.Status, f.ID, termtext.Line(joined(judgedNames[f.ID], f.Why)))
	}
	if r.Text != "" {
		fmt.Fprintf(w, "\n%s\n", r.Text)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  %s\n", termtext.Line(note))
	}
	for _, doubt := range r.Doubts {
		fmt.Fprintf(w, "  WRONG: %s\n", termtext.Line(doubt))
	}
	fmt.Fprintf(w, "  every answer: %s\n", termtext.Line(r.Answers))
	if r.Picture != "" {
		fmt.Fprintf(w, "  heat map: %s\n", termtext.Line(r.Picture))
	}
}

// joined puts the parts that are there one after another.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}

func quickWord(setup record.Setup) string {
	if setup.Quick {
		return " (quick: a small sample, an impression and no score)"
	}
	return ""
}

func orNone(text string) string {
	if text == "" {
		return "by nobody"
	}
	return text
}

func scoreWords(s record.Score) string {
	return fmt.Sprintf("%-34s %5.1f %%  %s, 95 %% interval %.1f to %.1f %%", s.Name, s.Share*100,
		fmt.Sprintf("%d of %d", s.Hits, s.Of), s.Low*100, s.High*100)
}

// oneLine counts a report's findings, for the report card.
func oneLine(r record.Report) string {
	counts := map[string]int{}
	for _, f := range r.Findings {
		counts[f.Status]++
	}
	text := fmt.Sprintf("%d of %d pass", counts[record.Pass], len(r.Findings))
	for _, status := range []string{record.Fail, record.Unknown} {
		if n := counts[status]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, status)
		}
	}
	return text
}
