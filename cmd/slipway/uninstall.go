package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/apply"
	"slipway/installer/operate"
	"slipway/units"
)

func uninstallVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "uninstall", Usage: "stop the server and remove exactly what the receipts list",
		Flags: []cli.Flag{homeFlag(),
			&cli.BoolFlag{Name: "yes", Usage: "do it without a question"},
			&cli.BoolFlag{Name: "no-input", Usage: "never ask; without --yes end with exit code 5"},
			&cli.BoolFlag{Name: "keep-models", Usage: "leave the models where they are"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would be removed and change nothing"}},
		Action: func(c *cli.Context) error {
			s.same = append([]string{"uninstall"}, homeArgs(c)...)
			answer, err := s.operator(c).Uninstall(s.ctx, operate.UninstallInput{KeepModels: c.Bool("keep-models"),
				DryRun: c.Bool("dry-run"), Yes: c.Bool("yes")})
			verb := "Removed"
			if answer.DryRun {
				verb = "Would remove"
			}
			return s.answer(answer, err, func(w io.Writer) { printRemoval(w, answer.Path, answer.Removal, verb) })
		},
	}
}

func printRemoval(w io.Writer, path string, r apply.Removal, verb string) {
	fmt.Fprintf(w, "%s %s files and %d folders in %s.\n", verb, units.Count(len(r.Files)), len(r.Folders), path)
	for _, note := range r.Notes {
		fmt.Fprintln(w, note)
	}
	for _, left := range r.Left {
		fmt.Fprintf(w, "Left: %q %s.\n", left.Path, left.Why)
	}
	if len(r.Left) > 0 {
		fmt.Fprintln(w, "The home stays because of what is left in it.")
	}
}
