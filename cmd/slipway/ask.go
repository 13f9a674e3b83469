package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
	"slipway/termtext"
)

func askVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "ask", Usage: "ask the running server once and stream the answer", ArgsUsage: "QUESTION",
		Flags: []cli.Flag{homeFlag(), &cli.IntFlag{Name: "max-tokens", Value: 512, Usage: "longest answer, in tokens"}},
		Action: func(c *cli.Context) error {
			in := operate.AskInput{Question: strings.TrimSpace(strings.Join(c.Args().Slice(), " ")),
				MaxTokens: c.Int("max-tokens")}
			if !s.json {
				in.OnPiece = func(piece string) { fmt.Fprint(s.out, termtext.Text(piece)) }
			}
			answer, err := s.operator(c).Ask(s.ctx, in)
			if err != nil {
				return err
			}
			return s.result(exitOK, answer, func(w io.Writer) { fmt.Fprintln(w) })
		},
	}
}

func quoted(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return "(nothing)"
	}
	return termtext.Text(s)
}
