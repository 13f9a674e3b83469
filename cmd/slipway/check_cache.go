package main

import (
	"github.com/urfave/cli/v2"

	"slipway/checks/suite"
	"slipway/installer/operate"
)

func checkCacheVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "cache", Usage: "check that the prefix cache never changes an answer",
		Flags: checkFlags(2, 192, &cli.IntFlag{Name: "tokens", Value: 1500, Usage: "length of the texts"}),
		Action: func(c *cli.Context) error {
			return s.checked(c, func(o *operate.Operator, at operate.CheckedServer,
				in suite.Input) (suite.CheckAnswer, error) {
				return o.CheckCache(s.ctx, operate.CacheCheckInput{CheckedServer: at,
					CacheInput: suite.CacheInput{Input: in, Tokens: c.Int("tokens")}})
			})
		},
	}
}

func checkToolsVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "tools", Usage: "check how functions are called: over turns, several at once, with every JSON type",
		Flags: checkFlags(5, 512),
		Action: func(c *cli.Context) error {
			return s.checked(c, func(o *operate.Operator, at operate.CheckedServer,
				in suite.Input) (suite.CheckAnswer, error) {
				return o.CheckTools(s.ctx, operate.ToolsInput{CheckedServer: at, Input: in})
			})
		},
	}
}
