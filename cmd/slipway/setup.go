package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
)

func setupVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "setup", Usage: "look, plan, ask, fetch, verify, build, launch, answer",
		Flags: append(choiceFlags(),
			&cli.BoolFlag{Name: "yes", Usage: "allow downloading, writing in the home, building and launching " +
				"without a question"},
			&cli.StringFlag{Name: "max-download", Usage: "refuse a model that is a larger download than this: 20GB"},
			&cli.BoolFlag{Name: "no-input", Usage: "never ask; without consent end with exit code 5"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would be done and change nothing"},
			&cli.BoolFlag{Name: "deep", Usage: "hash every byte of what is installed instead of looking at " +
				"sizes and times"},
			&cli.BoolFlag{Name: "set-aside-journal", Usage: "move a damaged journal out of the way first"},
			verboseFlag(), eventsFlag()),
		Action: func(c *cli.Context) error {
			in, err := inputOf(c)
			if err != nil {
				return err
			}
			in.Deep = c.Bool("deep")
			setup := operate.SetupInput{Input: in, Yes: c.Bool("yes"), GrantUnproven: c.Bool("accept-told"),
				SetAsideJournal: c.Bool("set-aside-journal")}
			if c.Bool("dry-run") {
				answer, err := s.operator(c).DryRun(s.ctx, setup)
				return s.answer(answer, err, func(w io.Writer) {
					s.printProposal(w, answer.Prepared)
					printStopped(w, answer.Prepared)
					printVerdict(w, answer.Prepared.Assessment)
				})
			}
			answer, err := s.operator(c).Setup(s.ctx, setup)
			return s.setupAnswer(c, answer, err)
		},
	}
}

// firstWords are what a person may ask first.
const firstWords = "Hello"

// setupAnswer prints what a set-up came to: the answer of the model, addresses, and how to stop.
func (s *session) setupAnswer(c *cli.Context, a operate.SetupAnswer, err error) error {
	return s.answer(a, err, func(w io.Writer) {
		if s.op.Toy() {
			defer fmt.Fprintln(w, toyWords)
		}
		if a.Server == nil {
			fmt.Fprintf(w, "Set up in %s. Start the server with: %s\n", a.Home, s.printed(c, "up"))
			return
		}
		fmt.Fprintf(w, "\nAsked: %s\nIt says: %s\n", a.Question, quoted(a.Answer))
		if a.Speed != nil {
			fmt.Fprintln(w, measuredWords(*a.Speed))
		}
		fmt.Fprintln(w)
		fmt.Fprintf(w, "API:   %s (OpenAI form)\n", a.Server.API)
		fmt.Fprintf(w, "Watch: %s\n", a.Server.Monitor)
		ask := append(append([]string{"ask"}, homeArgs(c)...), firstWords)
		fmt.Fprintf(w, "Ask:   %s\n", shellWords(s.argv(ask...)))
		fmt.Fprintf(w, "Stop:  %s\n", shellWords(a.Stop))
		if a.Draft != nil {
			fmt.Fprintf(w, "Draft: %s\n", a.Draft.Sentence())
		}
		for _, note := range a.Notes {
			fmt.Fprintf(w, "Note:  %s\n", note)
		}
	})
}

// measuredWords are the speed of the first answer, beside the estimate of the plan where there was one.
func measuredWords(s operate.Speed) string {
	words := fmt.Sprintf("Speed: %.1f tokens a second, measured over %d tokens", s.TokensPerSecond, s.Tokens)
	if s.EstimatedTokensPerSecond > 0 {
		words += fmt.Sprintf(" (%.1f were estimated)", s.EstimatedTokensPerSecond)
	}
	return words + ". More: slipway measure."
}

func verboseFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Usage: "show all that is known, in whole sentences"}
}
