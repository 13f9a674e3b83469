package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/answers"
)

func versionVerb(s *session) *cli.Command {
	return &cli.Command{Name: "version", Usage: "the version of this program", Action: func(*cli.Context) error {
		answer := answers.Version(version)
		return s.answer(answer, nil, func(w io.Writer) {
			fmt.Fprintf(w, "slipway %s (%s, %s)\n", answer.Version, answer.Go, answer.Target)
		})
	}}
}
