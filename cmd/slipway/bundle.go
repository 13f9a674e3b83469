package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
	"slipway/units"
)

func bundleVerb(s *session) *cli.Command {
	return &cli.Command{Name: "bundle", Usage: "carry an installed model to a machine without a network",
		Subcommands: []*cli.Command{
			{
				Name: "export", Usage: "write the installed model into one file",
				Flags: []cli.Flag{homeFlag(), &cli.StringFlag{
					Name: "out", Usage: "the file to write; it must not exist"}},
				Action: func(c *cli.Context) error {
					answer, err := s.operator(c).ExportBundle(s.ctx, operate.ExportInput{File: c.String("out")})
					return s.bundled(answer, err, "Wrote")
				},
			},
			{
				Name: "import", Usage: "install a model from a bundle; no network is used",
				Flags: []cli.Flag{homeFlag(), &cli.StringFlag{Name: "in", Usage: "the bundle"},
					&cli.BoolFlag{Name: "accept-told", Usage: "trust the bundle's hashes without a proof from the " +
						"revision when no lock of this model is known"}},
				Action: func(c *cli.Context) error {
					answer, err := s.operator(c).ImportBundle(s.ctx, operate.ImportInput{File: c.String("in"),
						AcceptUnproven: c.Bool("accept-told")})
					return s.bundled(answer, err, "Installed")
				},
			},
		}}
}

func (s *session) bundled(a operate.BundleAnswer, err error, verb string) error {
	return s.answer(a, err, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s at %s: %s, %s.\n", verb, a.Repo, a.Revision, files(a.Files), units.Short(a.Bytes))
		switch {
		case a.Unproven == 1:
			fmt.Fprintln(w, "The hash of one file is not proven from the revision.")
		case a.Unproven > 1:
			fmt.Fprintf(w, "The hashes of %d files are not proven from the revision.\n", a.Unproven)
		}
	})
}

// files is a number of files in words.
func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
