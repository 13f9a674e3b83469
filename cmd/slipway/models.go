package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/plan"
)

// modelsAnswer is the data of models list.
type modelsAnswer struct {
	Models []installer.ModelRow `json:"models"`
}

func modelsVerb(s *session) *cli.Command {
	return &cli.Command{Name: "models", Usage: "the models that slipway knows", Subcommands: []*cli.Command{
		modelsLockVerb(s),
		{
			Name: "list", Usage: "models, whether they fit this machine, and whether they can be installed", Flags: []cli.Flag{homeFlag()},
			Action: func(c *cli.Context) error {
				rows, err := installer.Models(s.ctx, c.String("home"), s.place)
				if err != nil {
					return err
				}
				return s.result(exitOK, modelsAnswer{rows}, func(w io.Writer) {
					for _, m := range rows {
						fmt.Fprintf(w, "%s\n  %s, licence %s", m.ID, m.Title, m.License)
						if m.Bytes > 0 {
							fmt.Fprintf(w, ", %s", plan.Bytes(m.Bytes))
						}
						fmt.Fprintf(w, "\n  %s\n", m.Sentence)
						if !m.Locked {
							fmt.Fprintln(w, "  Its hashes are not known yet: "+s.printed(c, "models", "lock", "--model", m.ID))
						}
					}
				})
			},
		},
	}}
}
