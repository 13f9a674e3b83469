package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/checks/measure"
	"slipway/checks/suite"
	"slipway/installer/operate"
	"slipway/termtext"
)

// draftSweep is measure --draft-sweep.
func (s *session) draftSweep(c *cli.Context) error {
	if c.Bool("fresh") || c.Bool("show-answer") {
		return usage("--draft-sweep times decode alone and shows no answer: leave --fresh and --show-answer out")
	}
	server, err := s.judged(c)
	if err != nil {
		return err
	}
	in := operate.MeasureDraftsInput{Server: server, Keep: c.Bool("keep")}
	in.MaxTokens, in.Thinking = c.Int("max-tokens"), c.Bool("thinking")
	if c.IsSet("repeat") {
		in.Rounds = c.Int("repeat")
	}
	if file := c.String("file"); file != "" {
		name, text, err := s.measuredFile(file)
		if err != nil {
			return err
		}
		in.Texts = []measure.SweepText{{Name: name, Text: text}}
	}
	in.Stage = func(done, of int) {
		if done%10 == 0 {
			s.say("Request %d of %d.", done+1, of)
		}
	}
	answer, err := s.operator(c).MeasureDrafts(s.ctx, in)
	return s.answer(answer, err, func(w io.Writer) { printSweep(w, answer) })
}

func printSweep(w io.Writer, a suite.SweepAnswer) {
	sweep := a.Sweep
	fmt.Fprintf(w, "%s\n\n", termtext.Line(serverWords(a.URL, a.Server)))
	fmt.Fprintf(w, "%-8s %12s %8s %12s %11s\n", "draft", "tokens/s", "gain", "tokens/pass", "accepted")
	for _, row := range sweep.Rows {
		fmt.Fprintf(w, "%-8s %12.1f %7.2fx %12.2f %11s\n", draftWord(sweep.Draft, row.Tokens), row.Rate, row.Gain,
			row.TokensPerPass, shareWord(row.Acceptance))
		for _, text := range row.Texts {
			if row.Tokens > 0 {
				fmt.Fprintf(w, "  %-19s %7.2fx %12.2f %11s%s\n", termtext.Line(text.Name), text.Gain,
					text.TokensPerPass,
					shareWord(text.Acceptance), sameWord(text.Same))
			}
		}
	}
	fmt.Fprintln(w)
	switch {
	case sweep.Best == 0:
		fmt.Fprintln(w, "No draft is worth it here: none gains 3 %.")
	default:
		fmt.Fprintf(w, "Best here: %s.\n", draftWord(sweep.Draft, sweep.Best))
	}
	switch {
	case a.Kept:
		fmt.Fprintln(w, "That is used now, and after a restart.")
	case sweep.Best != sweep.InForce:
		fmt.Fprintf(w, "Used now: %s; --keep changes that.\n", draftWord(sweep.Draft, sweep.InForce))
	}
}

func draftWord(draft string, tokens int) string {
	if tokens == 0 {
		return "none"
	}
	return fmt.Sprintf("%s %d", termtext.Line(draft), tokens)
}

func shareWord(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", *share*100)
}

func sameWord(same bool) string {
	if same {
		return ""
	}
	return "  another answer"
}
