package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
	"slipway/units"
)

func gcVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "gc", Usage: "remove models, partial files and quarantined files that nothing needs",
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "dry-run", Usage: "print what would be removed and " +
			"change nothing"},
			&cli.BoolFlag{Name: "all", Usage: "also models that were locked or imported and never set up"},
			&cli.BoolFlag{Name: "yes", Usage: "remove it; without --yes nothing is removed"}},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).GC(s.ctx, operate.GCInput{DryRun: c.Bool("dry-run"), All: c.Bool("all"),
				Yes: c.Bool("yes")})
			return s.answer(answer, err, func(w io.Writer) {
				for _, g := range answer.Garbage {
					fmt.Fprintf(w, "%s, %s: %s\n", g.Path, units.Short(g.Bytes), g.Why)
				}
				verb := "Freed"
				if answer.DryRun {
					verb = "Would free"
				}
				fmt.Fprintf(w, "%s %s.\n", verb, units.Short(answer.Bytes))
			})
		},
	}
}
