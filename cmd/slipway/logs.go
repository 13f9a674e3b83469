package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/operate"
)

func logsVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print the end of the server's log",
		Flags: []cli.Flag{homeFlag(), &cli.IntFlag{Name: "lines", Value: 50, Usage: "how many"},
			&cli.BoolFlag{Name: "follow", Usage: "go on printing until Ctrl-C"}},
		Action: func(c *cli.Context) error {
			in := operate.LogsInput{Lines: c.Int("lines")}
			if c.Bool("follow") {
				if s.json {
					return usage("--follow and --json do not go together: a document has an end")
				}
				if err := s.operator(c).FollowLog(s.ctx, s.follow(in.Lines)); err != nil {
					return err
				}
				return context.Cause(s.ctx)
			}
			answer, err := s.operator(c).Logs(in)
			return s.answer(answer, err, func(w io.Writer) {
				words(answer.Lines...)(w)
				if len(answer.Lines) == 0 && s.open() == nil {
					fmt.Fprintln(s.errOut, "No server has written a log here yet; start one: "+s.printed(c, "up"))
				}
			})
		},
	}
}

// follow prints a log as it grows.
func (s *session) follow(lines int) operate.FollowInput {
	return operate.FollowInput{LogsInput: operate.LogsInput{Lines: lines}, Text: func(text string) error {
		_, err := io.WriteString(s.out, text)
		return err
	}}
}
