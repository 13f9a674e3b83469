package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/apply"
	"slipway/installer/consent"
	"slipway/installer/plan"
)

func uninstallVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "uninstall", Usage: "stop the server and remove exactly what the receipts list",
		Flags: []cli.Flag{homeFlag(),
			&cli.BoolFlag{Name: "yes", Usage: "do it without a question"},
			&cli.BoolFlag{Name: "no-input", Usage: "never ask; without --yes end with exit code 5"},
			&cli.BoolFlag{Name: "keep-models", Usage: "leave the models where they are"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would be removed and change nothing"}},
		Action: func(c *cli.Context) error { return uninstall(s, c) },
	}
}

func uninstall(s *session, c *cli.Context) error {
	resolved, err := apply.ResolveHome(c.String("home"), s.place.UserHome)
	if err != nil {
		return err
	}
	open := apply.OpenMarkedHome
	if c.Bool("dry-run") {
		open = apply.OpenHome // writes nothing at all
	}
	home, err := open(resolved, s.place.UserHome)
	if err != nil {
		return err
	}
	defer home.Close()
	removal, err := apply.PlanRemoval(s.ctx, home, c.Bool("keep-models"))
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return s.result(exitChanges, removal, func(w io.Writer) { printRemoval(w, home.Path, removal, "Would remove") })
	}
	if !c.Bool("yes") {
		if err := askToRemove(s, c, home.Path, removal); err != nil {
			return err
		}
	}
	if err := s.restoreBeforeRemoval(home); err != nil {
		return err
	}
	removal, err = apply.Uninstall(s.ctx, home, c.Bool("keep-models"))
	if err != nil {
		return s.stopped(err, append([]string{"uninstall"}, homeArgs(c)...))
	}
	return s.result(exitOK, removal, func(w io.Writer) { printRemoval(w, home.Path, removal, "Removed") })
}

func askToRemove(s *session, c *cli.Context, path string, removal apply.Removal) error {
	manner := s.terminal.Manner(s.json || c.Bool("no-input"))
	if manner == consent.Nobody {
		return &failure{code: exitConsent, what: "Consent is needed to remove what is set up.",
			then: "Nothing was done. Look first with --dry-run, then add --yes.", next: append([]string{"uninstall", "--dry-run"}, homeArgs(c)...)}
	}
	printRemoval(printable{s.errOut}, path, removal, "Will remove")
	return s.agreed(manner, "Remove this?")
}

func printRemoval(w io.Writer, path string, r apply.Removal, verb string) {
	fmt.Fprintf(w, "%s %s files and %d folders in %s.\n", verb, plan.Count(len(r.Files)), len(r.Folders), path)
	for _, left := range r.Left {
		fmt.Fprintf(w, "Left: %q %s.\n", left.Path, left.Why)
	}
	if len(r.Left) > 0 {
		fmt.Fprintln(w, "The home stays because of what is left in it.")
	}
}
