package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
)

func neighborsVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "neighbors", Aliases: []string{"neighbours"},
		Usage: "show other model servers on this machine, and whether they work; change nothing",
		Flags: []cli.Flag{homeFlag()},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).Neighbors(s.ctx)
			return s.answer(answer, err, func(w io.Writer) { printNeighbors(w, answer) })
		},
	}
}

func printNeighbors(w io.Writer, a operate.NeighborsAnswer) {
	if len(a.Neighbors) == 0 {
		fmt.Fprintln(w, "No other model server is listening on the ports that slipway knows.")
	}
	for _, n := range a.Neighbors {
		fmt.Fprintln(w, n.Line+".")
		if n.Exe != "" {
			fmt.Fprintf(w, "  Program: %q with %d arguments\n", filepath.Clean(n.Exe), n.Arguments)
		}
		for _, model := range n.Models {
			fmt.Fprintf(w, "  Model:   %q\n", model)
		}
		if n.Starter.Name != "" {
			fmt.Fprintf(w, "  Started by %s %q\n", n.Starter.Type, n.Starter.Name)
		}
		for _, loss := range n.Losses {
			fmt.Fprintf(w, "  Might be lost: %s\n", loss)
		}
	}
	for _, r := range a.Stopped {
		fmt.Fprintln(w, r.Sentence)
	}
}
