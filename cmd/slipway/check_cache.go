package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/checks/cache"
	"slipway/checks/client"
	"slipway/checks/count"
	"slipway/checks/needle"
	"slipway/checks/record"
	"slipway/units"
)

func cacheVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "cache", Usage: "check that the prefix cache never changes an answer",
		Flags: checkFlags(2, 192, &cli.IntFlag{Name: "tokens", Value: 1500, Usage: "length of the texts"}),
		Action: func(c *cli.Context) error {
			if n := c.Int("tokens"); n < 300 || n > 1<<20 {
				return usage("--tokens is 300 to 1048576")
			}
			server, err := s.judged(c)
			if err != nil {
				return err
			}
			setup, err := s.setupOf(c, "cache", server)
			if err != nil {
				return err
			}
			report, err := s.cache(c, server, setup, c.Int("tokens"))
			if err != nil {
				return err
			}
			return s.checkResult(c, report, func(w io.Writer) { printReport(w, report) })
		},
	}
}

func (s *session) cache(c *cli.Context, server *client.Server, setup record.Setup, tokens int) (record.Report, error) {
	if w := server.Details.WindowTokens; w > 0 && tokens+tokens/countMargin+setup.MaxTokens+256 > w {
		return record.Report{}, usage(fmt.Sprintf("texts of %s tokens and what is said about them are beyond the server's window of %s", units.Count(tokens), units.Count(w)))
	}
	if setup.Thinking {
		return record.Report{}, usage("check cache asks for short answers without thinking")
	}
	counter, err := count.New(s.ctx, server)
	if err != nil {
		return record.Report{}, err
	}
	ruler, err := needle.Measure(s.ctx, counter)
	if err != nil {
		return record.Report{}, err
	}
	setup.Lengths, setup.Template, setup.Scoring, setup.Tokens = []int{tokens}, cache.Template, cache.Scoring, ruler.Route
	tasks := cache.Tasks(server, ruler, cache.Options{Tokens: tokens, Samples: setup.Samples, Seed: setup.Seed, MaxTokens: setup.MaxTokens, Nonce: randomWord})
	return s.runCheck(c, setup, tasks, func(answers []record.Answer, report *record.Report) map[string][]byte {
		report.Findings, report.Scores = cache.Findings(answers), []record.Score{}
		return map[string][]byte{}
	})
}
