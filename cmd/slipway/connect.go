package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
)

func connectVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "connect", Usage: "print the settings for a client: " + strings.Join(operate.Clients(), ", "),
		ArgsUsage: "CLIENT", Flags: []cli.Flag{homeFlag()},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).Connect(operate.ConnectInput{Client: strings.Join(c.Args().Slice(), " ")})
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
				answer, err := operate.AgentPrompt(operate.AgentInput{Language: c.String("lang"),
					Command: shellWords(s.invocation)})
				return s.answer(answer, err, func(w io.Writer) { fmt.Fprint(w, answer.Text) })
			},
		}}}
}
