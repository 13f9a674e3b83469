package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/checks/filler"
	"slipway/checks/measure"
	"slipway/checks/record"
	"slipway/checks/ruler"
	"slipway/termtext"
	"slipway/units"
)

// cardAnswer is the data of check all.
type cardAnswer struct {
	Quick   bool            `json:"quick"`
	Server  client.Identity `json:"server"`
	URL     string          `json:"url"`
	Speed   measure.Run     `json:"speed"`
	Reports []record.Report `json:"reports"`
}

func allVerb(s *session) *cli.Command {
	flags := append(judgedFlags(), recordFlags(0, 256)...)
	return &cli.Command{
		Name: "all", Usage: "measure and run every check of one server, and print a report card",
		Flags: append(flags, &cli.BoolFlag{Name: "quick", Usage: "a small sample of each: an impression in minutes, no score"}),
		Action: func(c *cli.Context) error {
			if c.IsSet("samples") && c.Int("samples") < 1 {
				return usage("--samples must be at least 1")
			}
			server, err := s.judged(c)
			if err != nil {
				return err
			}
			answer, err := s.card(c, server)
			if err != nil {
				return err
			}
			code := exitOK
			if len(answer.Speed.Doubts) > 0 {
				code = exitCheckFailed
			}
			for _, r := range answer.Reports {
				if r.Failed() {
					code = exitCheckFailed
				}
			}
			return s.result(code, answer, func(w io.Writer) { printCard(w, answer) })
		},
	}
}

// part is one check of the card, with the samples of the whole run and of the quick one.
type part struct {
	check        string
	samples      int
	quick        int
	lengths      []int
	quickLengths []int
	run          func(setup record.Setup) (record.Report, error)
}

func (s *session) card(c *cli.Context, server *client.Server) (cardAnswer, error) {
	answer := cardAnswer{Quick: c.Bool("quick"), Server: server.Details, URL: server.Base, Reports: []record.Report{}}
	speed, err := measure.Do(s.ctx, server, measure.Options{Text: filler.Text(60) + "\n\nRepeat the text above from its beginning, word for word.", Fresh: true, Nonce: randomWord, MaxTokens: 64, Repeat: 1})
	if err != nil {
		return answer, err
	}
	answer.Speed = speed.Runs[0]
	answer.Speed.Answer, answer.Speed.Thinking = "", ""
	tasks, textTokens := ruler.Names(), 3000
	if answer.Quick {
		tasks, textTokens = []string{"niah_multikey_2", "vt", "fwe"}, 700
	}
	for _, p := range []part{
		{"needle", 20, 4, []int{1024, 4096, 16384, 65536, 131072, 258000}, []int{600, 1400}, func(setup record.Setup) (record.Report, error) { return s.needle(c, server, setup, 4, 0) }},
		{"ruler", 25, 2, []int{4096, 8192, 16384, 32768, 65536, 131072, 258000}, []int{1400}, func(setup record.Setup) (record.Report, error) { return s.ruler(c, server, setup, tasks, 1) }},
		{"cache", 3, 1, nil, nil, func(setup record.Setup) (record.Report, error) {
			setup.Thinking = false
			return s.cache(c, server, setup, textTokens)
		}},
		{"tools", 10, 2, nil, nil, func(setup record.Setup) (record.Report, error) { return s.tools(c, server, setup) }},
	} {
		report, err := s.part(c, server, p, answer.Quick)
		if err != nil {
			return answer, err
		}
		answer.Reports = append(answer.Reports, report)
	}
	return answer, nil
}

func (s *session) part(c *cli.Context, server *client.Server, p part, quick bool) (record.Report, error) {
	samples, lengths := p.samples, p.lengths
	if quick {
		samples, lengths = p.quick, p.quickLengths
	}
	if c.Int("samples") > 0 {
		samples = c.Int("samples")
	}
	setup, err := s.setupWith(c, p.check, server, samples)
	if err != nil {
		return record.Report{}, err
	}
	setup.Quick = quick
	if lengths != nil {
		if setup.Lengths, err = lengthsOf(c, server, lengths...); err != nil {
			return record.Report{}, err
		}
	}
	return p.run(setup)
}

// printCard fits a screen: a line a number, a line a check, and what failed.
func printCard(w io.Writer, a cardAnswer) {
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
