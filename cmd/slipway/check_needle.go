package main

import (
	"github.com/urfave/cli/v2"

	"slipway/checks/suite"
	"slipway/installer/operate"
)

func checkNeedleVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "needle", Usage: "hide codes in long texts and ask for them",
		Flags: checkFlags(20, 256, lengthsFlag(""), atLeastFlag(),
			&cli.IntFlag{Name: "codes", Value: 4, Usage: "codes in each text, asked for together"},
			&cli.IntFlag{Name: "grid", Usage: "one code in each text, at so many depths from the beginning to the " +
				"end; --samples counts for each depth"}),
		Action: func(c *cli.Context) error {
			return s.checked(c, func(o *operate.Operator, at operate.CheckedServer,
				in suite.Input) (suite.CheckAnswer, error) {
				return o.CheckNeedle(s.ctx, operate.NeedleInput{CheckedServer: at,
					NeedleInput: suite.NeedleInput{Input: in, Codes: c.Int("codes"), Grid: c.Int("grid")}})
			})
		},
	}
}
