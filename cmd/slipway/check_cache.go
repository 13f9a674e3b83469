package main

import (
	"github.com/urfave/cli/v2"

	"slipway/checks/record"
	"slipway/checks/suite"
)

func checkCacheVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "cache", Usage: "check that the prefix cache never changes an answer",
		Flags: checkFlags(2, 192, &cli.IntFlag{Name: "tokens", Value: 1500, Usage: "length of the texts"}),
		Action: func(c *cli.Context) error {
			with := func(in suite.Input) suite.CacheInput {
				return suite.CacheInput{Input: in, Tokens: c.Int("tokens")}
			}
			return s.checked(c, func(in suite.Input) error { return with(in).Check() },
				func(r *suite.Runner, in suite.Input) (record.Report, error) { return r.Cache(s.ctx, with(in)) })
		},
	}
}

func checkToolsVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "tools", Usage: "check how functions are called: over turns, several at once, with every JSON type",
		Flags: checkFlags(5, 512),
		Action: func(c *cli.Context) error {
			return s.checked(c, nil, func(r *suite.Runner, in suite.Input) (record.Report, error) {
				return r.Tools(s.ctx, in)
			})
		},
	}
}
