package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/operate"
	"slipway/units"
)

func modelsVerb(s *session) *cli.Command {
	return &cli.Command{Name: "models", Usage: "the models that slipway knows", Subcommands: []*cli.Command{
		modelsLockVerb(s),
		{
			Name: "list", Usage: "models, whether they fit this machine, and whether they can be installed",
			Flags: []cli.Flag{homeFlag()},
			Action: func(c *cli.Context) error {
				answer, err := s.operator(c).Models(s.ctx)
				return s.answer(answer, err, func(w io.Writer) {
					for _, m := range answer.Models {
						s.printModel(c, w, m)
					}
				})
			},
		},
	}}
}

// printModel is a model in a few lines, with the command that takes it.
func (s *session) printModel(c *cli.Context, w io.Writer, m installer.ModelRow) {
	size := ""
	if m.Bytes > 0 {
		size = ", " + units.Short(m.Bytes)
	}
	fmt.Fprintf(w, "%s: %s, licence %s%s\n  %s\n", m.ID, m.Title, m.License, size, m.Short)
	if m.TokensPerSecond > 0 {
		fmt.Fprintf(w, "  About %.1f tokens a second here (estimated).\n", m.TokensPerSecond)
	}
	if m.Fits {
		fmt.Fprintf(w, "  Set it up: %s\n", s.printed(c, "setup", "--model", m.ID))
	}
}

func modelsLockVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "lock", Usage: "derive every hash of a model from its revision, and keep the lock in the home",
		Flags: []cli.Flag{homeFlag(), &cli.StringFlag{Name: "model", Usage: "which one (slipway models list)"},
			&cli.BoolFlag{Name: "accept-told", Usage: "take the hub's word where there is no proof"},
			&cli.BoolFlag{Name: "replace", Usage: "put the new lock in the place of one in the home that names " +
				"other bytes"}},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).LockModel(s.ctx, operate.LockModelInput{Model: c.String("model"),
				AcceptUnproven: c.Bool("accept-told"), Replace: c.Bool("replace")})
			return s.answer(answer, err, func(w io.Writer) {
				fmt.Fprintf(w, "Locked %s at %s: %s, %s.\n%s\n", answer.Repo, answer.Revision, files(answer.Files),
					units.Short(answer.Bytes), answer.Sentence)
				fmt.Fprintf(w, "Set it up: %s\n", s.printed(c, "setup", "--model", answer.Model))
			})
		},
	}
}
