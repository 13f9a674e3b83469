package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/operate"
	"slipway/installer/plan"
)

func planVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "print the plan, or write it to a file that apply takes",
		Flags: append(choiceFlags(), verboseFlag(), &cli.StringFlag{Name: "out",
			Usage: "file to write the plan to; it is the only thing that is written"}),
		Action: func(c *cli.Context) error {
			in, err := inputOf(c)
			if err != nil {
				return err
			}
			answer, err := s.operator(c).Plan(s.ctx, operate.PlanInput{Input: in, File: c.String("out")})
			return s.answer(answer, err, func(w io.Writer) {
				s.printProposal(w, answer.Prepared)
				printStopped(w, answer.Prepared)
				printVerdict(w, answer.Prepared.Assessment)
				if len(answer.Apply) > 0 {
					fmt.Fprintf(w, "Do exactly this: %s\n", shellWords(answer.Apply))
				}
			})
		},
	}
}

func doctorVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "check machine, home and server; change nothing",
		Flags: choiceFlags(),
		Action: func(c *cli.Context) error {
			in, err := inputOf(c)
			if err != nil {
				return err
			}
			answer, err := s.operator(c).Doctor(s.ctx, in)
			return s.answer(answer, err, func(w io.Writer) {
				for _, line := range append(factLines(answer.Facts), serverLine(answer.ServerCan)) {
					fmt.Fprintln(w, line)
				}
				fmt.Fprintln(w)
				for _, check := range answer.Checks {
					fmt.Fprintf(w, "%-8s  %-15s  %s\n", check.Status, check.ID, check.Observed)
					if (check.Status == "fail" || check.Status == "warn") && check.Fix != "" {
						fmt.Fprintf(w, "%26s %s\n", "", check.Fix)
					}
				}
				printVerdict(w, answer.Prepared.Assessment)
			})
		},
	}
}

// printStopped names the servers that slipway has stopped and that are not back: whoever reads a plan has to know.
func printStopped(w io.Writer, p installer.Prepared) {
	for _, sentence := range p.Stopped {
		fmt.Fprintln(w, sentence)
	}
}

func printVerdict(w io.Writer, st plan.Assessment) {
	for _, b := range st.Blockers {
		fmt.Fprintf(w, "In the way: %s\n  %s\n", b.Sentence, b.Fix)
	}
	switch {
	case !st.CanApply:
		fmt.Fprintln(w, "Not ready, and the plan cannot be applied as things are.")
	case st.PendingCount() == 0:
		fmt.Fprintln(w, "Everything is as planned.")
	case st.Ready:
		fmt.Fprintln(w, "Ready: the server can be started now.")
	default:
		fmt.Fprintln(w, "Not ready yet; nothing is in the way of the plan. Nothing was changed.")
	}
}
