package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/installer/answers"
)

func schemaVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON schema of a verb's document", ArgsUsage: "VERB...",
		Action: func(c *cli.Context) error {
			answer, err := answers.Schema(strings.Join(c.Args().Slice(), " "))
			return s.answer(answer, err, func(w io.Writer) {
				enc := json.NewEncoder(w)
				enc.SetIndent("", "  ")
				enc.Encode(answer.Schema)
			})
		},
	}
}
