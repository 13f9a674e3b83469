package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/measure"
	"slipway/checks/record"
	"slipway/checks/suite"
	"slipway/installer/operate"
	"slipway/termtext"
	"slipway/units"
)

func checkAllVerb(s *session) *cli.Command {
	flags := append(judgedFlags(), recordFlags(0, 256)...)
	return &cli.Command{
		Name: "all", Usage: "measure and run every check of one server, and print a report card",
		Flags: append(flags, &cli.BoolFlag{Name: "quick",
			Usage: "a small sample of each: an impression in minutes, no score"}),
		Action: func(c *cli.Context) error {
			in, err := checkInput(c)
			if err != nil {
				return err
			}
			in.Quick = c.Bool("quick")
			server, err := s.judged(c)
			if err != nil {
				return err
			}
			answer, err := s.operator(c).CheckAll(s.ctx, operate.CardInput{Input: in,
				CheckedServer: operate.CheckedServer{Server: server, Out: c.String("out")}})
			return s.answer(answer, err, func(w io.Writer) { printCard(w, answer) })
		},
	}
}

// printCard fits a screen: a line a number, a line a check, and what failed.
func printCard(w io.Writer, a suite.CardAnswer) {
	kind := "Report card"
	if a.Quick {
		kind = "Quick report card (small samples: an impression, no score)"
	}
	fmt.Fprintf(w, "%s\n%s\n\n", kind, termtext.Line(serverWords(a.URL, a.Server)))
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-8s %s\n", name, termtext.Line(fmt.Sprintf(format, args...)))
	}
	row("speed", "%s", speedWords(a.Speed))
	for _, r := range a.Reports {
		name := r.Setup.Check
		if len(r.Findings) > 0 {
			row(name, "%s", oneLine(r))
			for _, f := range r.Findings {
				if f.Status != record.Pass {
					row("", "%s: %s: %s", f.Status, f.ID, f.Why)
				}
			}
		} else {
			for _, score := range r.Scores {
				row(name, "%s", scoreWords(score))
				name = ""
			}
		}
		for _, d := range r.Doubts {
			row("", "WRONG: %s", d)
		}
	}
	for _, d := range a.Speed.Doubts {
		row("", "WRONG: %s", d.Why)
	}
	fmt.Fprintf(w, "\nEvery answer is kept in %s\n", termtext.Line(folderOf(a.Reports)))
}

func folderOf(reports []record.Report) string {
	if len(reports) == 0 {
		return "no file"
	}
	answers := reports[len(reports)-1].Answers
	return answers[:strings.LastIndex(answers, "/")+1]
}

func speedWords(r measure.Run) string {
	var words []string
	if r.FirstToken != nil {
		text := "first token " + measure.Seconds(*r.FirstToken) + " (client)"
		if r.Prompt != nil {
			text += fmt.Sprintf(" for %s new tokens", units.Count(*r.Prompt))
		}
		words = append(words, text)
	}
	for _, n := range []struct {
		name, word string
		value      *float64
	}{{"prefill_tokens_per_second", "prefill", r.PrefillRate}, {"decode_tokens_per_second", "decode", r.DecodeRate}} {
		if n.value != nil {
			words = append(words, fmt.Sprintf("%s %s (%s)", n.word, measured(n.name, *n.value), r.Whose[n.name]))
		} else {
			words = append(words, n.word+" - ("+r.Absent[n.name]+")")
		}
	}
	return strings.Join(words, "; ")
}
