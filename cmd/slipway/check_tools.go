package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/checks/record"
	"slipway/checks/tools"
)

func toolsVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "tools", Usage: "check how functions are called: over turns, several at once, with every JSON type",
		Flags: checkFlags(5, 512),
		Action: func(c *cli.Context) error {
			server, err := s.judged(c)
			if err != nil {
				return err
			}
			setup, err := s.setupOf(c, "tools", server)
			if err != nil {
				return err
			}
			report, err := s.tools(c, server, setup)
			if err != nil {
				return err
			}
			return s.checkResult(c, report, func(w io.Writer) { printReport(w, report) })
		},
	}
}

func (s *session) tools(c *cli.Context, server *client.Server, setup record.Setup) (record.Report, error) {
	setup.Template, setup.Scoring, setup.Tokens = tools.Template, tools.Scoring, "by the server's usage"
	tasks := tools.Tasks(server, tools.Options{Samples: setup.Samples, Seed: setup.Seed, MaxTokens: setup.MaxTokens, Thinking: setup.Thinking})
	return s.runCheck(c, setup, tasks, func(answers []record.Answer, report *record.Report) map[string][]byte {
		report.Findings = tools.Findings(answers)
		return map[string][]byte{}
	})
}
