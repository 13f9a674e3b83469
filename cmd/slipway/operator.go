package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"slipway/installer/consent"
	"slipway/installer/operate"
)

// operator carries out this command line's verb. Every verb has a home.
func (s *session) operator(c *cli.Context) *operate.Operator {
	s.progress = s.newProgress(c.Bool("verbose"))
	s.op = &operate.Operator{Environment: s.environment, Version: version, Home: c.String("home"), Verb: s.verb,
		Continue: s.continueArgs,
		Caller: operate.Caller{
			Say:      func(text string) { s.say("%s", text) },
			Report:   s.progress.report,
			ShowPlan: s.showProposal,
			Agree: func(ctx context.Context, q operate.Question) (operate.Reply, error) {
				return s.agree(ctx, c, q)
			},
			Command: func(words ...string) []string { return s.argv(s.again(words)...) },
		}}
	return s.op
}

// agree asks at the terminal. With --json, events or --no-input no question is asked.
func (s *session) agree(ctx context.Context, c *cli.Context, q operate.Question) (operate.Reply, error) {
	manner := s.terminal.Manner(s.json || s.events || c.Bool("no-input"))
	if manner == consent.NoTerminal {
		return operate.NotAsked, nil
	}
	question := "Do this?"
	switch {
	case q.Removal != nil:
		printRemoval(s.page(s.errOut), q.Path, *q.Removal, "Will remove")
		question = "Remove this?"
	case q.Cache != nil:
		printCache(s.page(s.errOut), *q.Cache)
		question = "Delete it?"
	}
	yes, err := s.terminal.Ask(ctx, manner, question)
	if yes && err == nil {
		return operate.Yes, nil
	}
	return operate.No, err
}
