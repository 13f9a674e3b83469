package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/ruler"
	"slipway/checks/suite"
	"slipway/installer/operate"
)

func checkRulerVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "ruler", Usage: "tasks of NVIDIA's RULER: keys, variables, common and frequent words",
		Flags: checkFlags(25, 256, lengthsFlag(""), atLeastFlag(),
			&cli.StringFlag{Name: "tasks", Value: strings.Join(ruler.Names(), ","), Usage: "which tasks, with " +
				"commas between"},
			&cli.IntFlag{Name: "shots", Value: 1, Usage: "1: a solved example in front of vt and cwe, as RULER has " +
				"it; 0: none"}),
		Action: func(c *cli.Context) error {
			return s.checked(c, func(o *operate.Operator, at operate.CheckedServer,
				in suite.Input) (suite.CheckAnswer, error) {
				return o.CheckRuler(s.ctx, operate.RulerInput{CheckedServer: at, RulerInput: suite.RulerInput{Input: in,
					Tasks: strings.Split(c.String("tasks"), ","), Shots: c.Int("shots")}})
			})
		},
	}
}
