package main

import (
	"github.com/urfave/cli/v2"

	"slipway/checks/record"
	"slipway/checks/suite"
)

func checkNeedleVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "needle", Usage: "hide codes in long texts and ask for them",
		Flags: checkFlags(20, 256, lengthsFlag(""), atLeastFlag(),
			&cli.IntFlag{Name: "codes", Value: 4, Usage: "codes in each text, asked for together"},
			&cli.IntFlag{Name: "grid", Usage: "one code in each text, at so many depths from the beginning to the " +
				"end; --samples counts for each depth"}),
		Action: func(c *cli.Context) error {
			with := func(in suite.Input) suite.NeedleInput {
				return suite.NeedleInput{Input: in, Codes: c.Int("codes"), Grid: c.Int("grid")}
			}
			return s.checked(c, func(in suite.Input) error { return with(in).Check() },
				func(r *suite.Runner, in suite.Input) (record.Report, error) { return r.Needle(s.ctx, with(in)) })
		},
	}
}
