package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/checks/count"
	"slipway/checks/needle"
	"slipway/checks/record"
	"slipway/units"
)

// heatRows are the depths that are told apart where codes lie anywhere.
const heatRows = 10

func needleVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "needle", Usage: "hide codes in long texts and ask for them",
		Flags: checkFlags(20, 256, lengthsFlag(""), atLeastFlag(),
			&cli.IntFlag{Name: "codes", Value: 4, Usage: "codes in each text, asked for together"},
			&cli.IntFlag{Name: "grid", Usage: "one code in each text, at so many depths from the beginning to the end; --samples counts for each depth"}),
		Action: func(c *cli.Context) error {
			if n := c.Int("codes"); n < 1 || n > 32 {
				return usage("--codes is 1 to 32")
			}
			if n := c.Int("grid"); n < 0 || n > 64 {
				return usage("--grid is 1 to 64")
			}
			server, err := s.judged(c)
			if err != nil {
				return err
			}
			setup, err := s.setupOf(c, "needle", server)
			if err != nil {
				return err
			}
			if setup.Lengths, err = lengthsOf(c, server, 1024, 4096, 16384, 65536, 131072, 258000); err != nil {
				return err
			}
			report, err := s.needle(c, server, setup, c.Int("codes"), c.Int("grid"))
			if err != nil {
				return err
			}
			return s.checkResult(c, report, func(w io.Writer) { printReport(w, report) })
		},
	}
}

func (s *session) needle(c *cli.Context, server *client.Server, setup record.Setup, codes, grid int) (record.Report, error) {
	counter, err := count.New(s.ctx, server)
	if err != nil {
		return record.Report{}, err
	}
	ruler, err := needle.Measure(s.ctx, counter)
	if err != nil {
		return record.Report{}, err
	}
	setup.Template, setup.Scoring, setup.Tokens = needle.Template, needle.Scoring, ruler.Route
	setup.Options["codes"], setup.Options["grid"] = fmt.Sprint(codes), fmt.Sprint(grid)
	rows := heatRows
	if grid > 1 {
		rows = min(grid, 20)
	}
	tasks := needle.Tasks(server, ruler, needle.Options{Lengths: setup.Lengths, Samples: setup.Samples, Codes: codes, Grid: grid, Seed: setup.Seed, MaxTokens: setup.MaxTokens, Thinking: setup.Thinking})
	return s.runCheck(c, setup, tasks, func(answers []record.Answer, report *record.Report) map[string][]byte {
		heat := needle.MapOf(answers, rows)
		report.Text = heat.Text()
		if grid == 0 && codes > 1 {
			report.Scores = append(report.Scores, needle.Documents(answers))
			report.Notes = append(report.Notes, "The codes of one text are asked for together, so they are less independent than the intervals take them to be.")
		}
		report.Notes = append(report.Notes, lengthNote(answers)...)
		return map[string][]byte{".png": heat.PNG()}
	})
}

// lengthNote says how long the prompts really were, where the server counts.
func lengthNote(answers []record.Answer) []string {
	least, most := map[string]int{}, map[string]int{}
	var groups []string
	for _, a := range answers {
		if a.Usage == nil {
			return []string{"The server gives no usage, so nobody counted how long the prompts really were."}
		}
		if _, seen := least[a.Group]; !seen {
			groups = append(groups, a.Group)
			least[a.Group], most[a.Group] = a.Usage.Prompt, a.Usage.Prompt
		}
		least[a.Group], most[a.Group] = min(least[a.Group], a.Usage.Prompt), max(most[a.Group], a.Usage.Prompt)
	}
	var notes []string
	for _, g := range groups {
		notes = append(notes, fmt.Sprintf("%s: the server counted %s to %s.", g, units.Count(least[g]), units.Count(most[g])))
	}
	return notes
}
