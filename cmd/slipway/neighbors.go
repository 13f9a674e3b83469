package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/installer/neighbor"
	"slipway/installer/operate"
	"slipway/termtext"
	"slipway/units"
)

func neighborsVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "neighbors", Aliases: []string{"neighbours"}, ArgsUsage: "[KIND | PORT | PID]",
		Usage: "show other model servers on this machine, and whether they work; change nothing",
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "verbose", Usage: "show all that is known of each server"}},
		Action: func(c *cli.Context) error {
			if c.Args().Len() > 1 {
				return usage("neighbors takes one kind, port or pid")
			}
			name := c.Args().First()
			answer, err := s.operator(c).Neighbors(s.ctx, operate.NeighborsInput{Name: name})
			return s.answer(answer, err, func(w io.Writer) {
				printNeighbors(w, answer, name, c.Bool("verbose") || name != "")
			})
		},
	}
}

func printNeighbors(w io.Writer, a operate.NeighborsAnswer, name string, verbose bool) {
	switch {
	case len(a.Neighbors) == 0 && name != "":
		fmt.Fprintf(w, "No server that listens is %q by kind, port or pid.\n", termtext.Line(name))
	case len(a.Neighbors) == 0:
		fmt.Fprintln(w, "No other model server is listening on the ports that slipway knows.")
	case verbose:
		for _, n := range a.Neighbors {
			printNeighbor(w, n)
		}
	default:
		fmt.Fprintln(w, "KIND        PORT    PID      MEMORY  STATE")
		for _, n := range a.Neighbors {
			fmt.Fprintln(w, neighborLine(n))
		}
		fmt.Fprintln(w, "For more, add --verbose, or a KIND or PORT from this list.")
	}
	for _, r := range a.Stopped {
		fmt.Fprintln(w, r.Sentence)
	}
}

// neighborLine is a server in one line of 80 columns. Its kind is what --allow-stop takes.
func neighborLine(n neighbor.Server) string {
	pid, memory, state := "-", "-", string(n.State)
	if n.PID > 0 {
		pid = fmt.Sprint(n.PID)
	}
	if n.FootprintBytes > 0 {
		memory = units.Binary(n.FootprintBytes)
	}
	switch {
	case n.Kind == "unknown":
		state = n.Refusal
		if n.Exe != "" {
			state = fmt.Sprintf("%q: %s", filepath.Base(n.Exe), n.Refusal)
		}
	case n.Refusal != "":
		state += "; not stopped: " + n.Refusal
	case len(n.Reasons) > 0:
		state += ": " + strings.Join(n.Reasons, "; ")
	case len(n.Losses) > 0:
		state += "; a stop needs --accept-loss"
	}
	line := fmt.Sprintf("%-9s %6d %6s %11s  %s", n.Kind, n.Port, pid, memory, state)
	return termtext.Cut(termtext.Name(line, 400), 79)
}

func printNeighbor(w io.Writer, n neighbor.Server) {
	fmt.Fprintln(w, n.Line+".")
	fmt.Fprintf(w, "  Kind:    %s\n", n.Kind)
	if len(n.Ports) > 1 {
		fmt.Fprintf(w, "  Ports:   %s\n", strings.Trim(fmt.Sprint(n.Ports), "[]"))
	}
	if n.FootprintBytes > 0 {
		fmt.Fprintf(w, "  Memory:  %s\n", units.Binary(n.FootprintBytes))
	}
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
	for _, missing := range n.Missing {
		fmt.Fprintf(w, "  Not as before after a stop: %s\n", missing)
	}
}
