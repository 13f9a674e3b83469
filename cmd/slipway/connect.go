package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
)

func connectVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "connect", Usage: "print the settings for a client: " + strings.Join(operate.Clients(), ", "),
		ArgsUsage: "CLIENT", Flags: []cli.Flag{homeFlag()},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 || !slices.Contains(operate.Clients(), c.Args().First()) {
				return usage(fmt.Sprintf("connect needs one client of: %s", strings.Join(operate.Clients(), ", ")))
			}
			answer, err := s.operator(c).Connect(c.Args().First())
			return s.answer(answer, err, func(w io.Writer) { fmt.Fprint(w, answer.Text) })
		},
	}
}

func agentVerb(s *session) *cli.Command {
	return &cli.Command{Name: "agent", Usage: "for AI assistants that set slipway up for a person",
		Subcommands: []*cli.Command{{
			Name: "prompt", Usage: "print the text that a person hands to an assistant",
			Flags: []cli.Flag{&cli.StringFlag{Name: "lang", Value: "en", Usage: "en or ru"}},
			Action: func(c *cli.Context) error {
				answer, err := operate.AgentPrompt(c.String("lang"), shellWords(s.invocation))
				return s.answer(answer, err, func(w io.Writer) { fmt.Fprint(w, answer.Text) })
			},
		}}}
}
