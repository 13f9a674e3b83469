package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/checks/count"
	"slipway/checks/record"
	"slipway/checks/ruler"
)

func rulerVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "ruler", Usage: "tasks of NVIDIA's RULER: keys, variables, common and frequent words",
		Flags: checkFlags(25, 256, lengthsFlag(""), atLeastFlag(),
			&cli.StringFlag{Name: "tasks", Value: strings.Join(ruler.Names(), ","), Usage: "which tasks, with commas between"},
			&cli.IntFlag{Name: "shots", Value: 1, Usage: "1: a solved example in front of vt and cwe, as RULER has it; 0: none"}),
		Action: func(c *cli.Context) error {
			names := strings.Split(c.String("tasks"), ",")
			for _, name := range names {
				if !slices.Contains(ruler.Names(), name) {
					return usage(fmt.Sprintf("--tasks has %q; there are: %s", name, strings.Join(ruler.Names(), ", ")))
				}
			}
			if n := c.Int("shots"); n != 0 && n != 1 {
				return usage("--shots is 0 or 1")
			}
			server, err := s.judged(c)
			if err != nil {
				return err
			}
			setup, err := s.setupOf(c, "ruler", server)
			if err != nil {
				return err
			}
			if setup.Lengths, err = lengthsOf(c, server, 4096, 8192, 16384, 32768, 65536, 131072, 258000); err != nil {
				return err
			}
			report, err := s.ruler(c, server, setup, names, c.Int("shots"))
			if err != nil {
				return err
			}
			return s.checkResult(c, report, func(w io.Writer) { printReport(w, report) })
		},
	}
}

func (s *session) ruler(c *cli.Context, server *client.Server, setup record.Setup, names []string, shots int) (record.Report, error) {
	counter, err := count.New(s.ctx, server)
	if err != nil {
		return record.Report{}, err
	}
	setup.Template, setup.Scoring, setup.Tokens = ruler.Template(names), ruler.Scoring, counter.Route
	setup.Options["tasks"], setup.Options["shots"] = strings.Join(names, ","), fmt.Sprint(shots)
	tasks, err := ruler.Tasks(s.ctx, server, counter, ruler.Options{Tasks: names, Lengths: setup.Lengths, Samples: setup.Samples, Seed: setup.Seed, Shots: shots, MaxTokens: setup.MaxTokens, Thinking: setup.Thinking})
	if short, ok := errors.AsType[*ruler.TooShortError](err); ok {
		return record.Report{}, usage(short.Error() + "; choose longer --lengths or a smaller --max-tokens")
	}
	if err != nil {
		return record.Report{}, err
	}
	return s.runCheck(c, setup, tasks, func(answers []record.Answer, report *record.Report) map[string][]byte {
		report.Notes = append(report.Notes, ruler.Differences...)
		report.Notes = append(report.Notes, lengthNote(answers)...)
		return map[string][]byte{}
	})
}
