package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/suite"
	"slipway/installer/operate"
)

// Checks are verbs of installer/operate; here are flags and words.

func checkVerb(s *session) *cli.Command {
	return &cli.Command{Name: "check", Usage: "check how a server answers: what it finds, what its cache does, how " +
		"it calls tools", Subcommands: []*cli.Command{
		checkNeedleVerb(s), checkCacheVerb(s), checkRulerVerb(s), checkToolsVerb(s), checkCompareVerb(s),
		checkAllVerb(s),
	}}
}

// checkFlags are those of every check. tokens and samples are the defaults of --max-tokens and --samples.
func checkFlags(samples, tokens int, more ...cli.Flag) []cli.Flag {
	return append(append(judgedFlags(), recordFlags(samples, tokens)...), more...)
}

func recordFlags(samples, tokens int) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "out", Usage: "folder for the answers; left out: checks in the home"},
		&cli.StringFlag{Name: "name", Usage: "name of the run; left out: the check's"},
		&cli.BoolFlag{Name: "restart", Usage: "set an unfinished run of that name aside and begin again"},
		&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "number that all random choices come from"},
		&cli.IntFlag{Name: "samples", Value: samples, Usage: "how many of each kind"},
		&cli.IntFlag{Name: "max-tokens", Value: tokens, Usage: "longest answer, in tokens"},
		&cli.BoolFlag{Name: "thinking", Usage: "let the model think first; raise --max-tokens with it"},
	}
}

func lengthsFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "lengths", Value: value,
		Usage: "tokens of the prompts, with commas between; k is 1024; left out: what the window takes"}
}

func atLeastFlag() cli.Flag {
	return &cli.Float64Flag{Name: "at-least", Usage: "end with exit code 21 when the share found in all is below " +
		"this, 0 to 1"}
}

// checkInput reads the flags of every check.
func checkInput(c *cli.Context) (suite.Input, error) {
	in := suite.Input{Name: c.String("name"), Restart: c.Bool("restart"), Seed: c.Uint64("seed"),
		Samples:   c.Int("samples"),
		MaxTokens: c.Int("max-tokens"), Thinking: c.Bool("thinking"), AtLeast: c.Float64("at-least")}
	text := c.String("lengths")
	if text == "" {
		return in, nil
	}
	for _, part := range strings.Split(text, ",") {
		part = strings.ToLower(strings.TrimSpace(part))
		digits, unit := strings.CutSuffix(part, "k")
		n, err := strconv.Atoi(digits)
		if unit {
			n *= 1024
		}
		if err != nil {
			return in, usage(fmt.Sprintf("--lengths has %q, and a length is a number of tokens such as 4096 or 4k",
				part))
		}
		in.Lengths = append(in.Lengths, n)
	}
	return in, nil
}

// checked reads the flags of a check, runs it, and prints its report.
func (s *session) checked(c *cli.Context,
	run func(*operate.Operator, operate.CheckedServer, suite.Input) (suite.CheckAnswer, error)) error {
	in, err := checkInput(c)
	if err != nil {
		return err
	}
	server, err := s.judged(c)
	if err != nil {
		return err
	}
	answer, err := run(s.operator(c), operate.CheckedServer{Server: server, Out: c.String("out")}, in)
	return s.answer(answer, err, func(w io.Writer) { printReport(w, answer.Report) })
}
