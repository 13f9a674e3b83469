package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/checks/record"
	"slipway/checks/suite"
	"slipway/fault"
)

// Checks are functions of checks/suite; here are flags and words.

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
		MaxTokens: c.Int("max-tokens"), Thinking: c.Bool("thinking")}
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
		if err != nil || n < 128 || n > 4<<20 {
			return in, usage(fmt.Sprintf("--lengths has %q, and a length is a number of tokens from 128 on, such as "+
				"4096 or 4k",
				part))
		}
		in.Lengths = append(in.Lengths, n)
	}
	return in, nil
}

// checked runs one check: check refuses what needs no server to be refused.
func (s *session) checked(c *cli.Context, check func(suite.Input) error,
	run func(*suite.Runner, suite.Input) (record.Report, error)) error {
	in, err := checkInput(c)
	if err != nil {
		return err
	}
	if check != nil {
		if err := check(in); err != nil {
			return err
		}
	}
	runner, err := s.runner(c)
	if err != nil {
		return err
	}
	report, err := run(runner, in)
	if err != nil {
		return err
	}
	return s.result(int(suite.Class(report, c.Float64("at-least"))), report, func(w io.Writer) {
		printReport(w, report)
	})
}

// runner checks the server that a verb is about.
func (s *session) runner(c *cli.Context) (*suite.Runner, error) {
	in, err := s.judged(c)
	if err != nil {
		return nil, err
	}
	server, profile, err := s.operator(c).Judged(s.ctx, in)
	if err != nil {
		return nil, err
	}
	r := s.runnerFor(c, server)
	r.Profile = profile
	return r, nil
}

func (s *session) runnerFor(c *cli.Context, server *client.Server) *suite.Runner {
	return &suite.Runner{Server: server, Version: version, Say: func(text string) { s.say("%s", text) },
		OpenFolder: func() (string, *os.Root, error) { return s.checkFolder(c) }}
}

// checkFolder opens the folder of answers, which only the person may read: they hold what models wrote.
func (s *session) checkFolder(c *cli.Context) (string, *os.Root, error) {
	if out := c.String("out"); out != "" {
		if err := os.MkdirAll(out, 0o700); err != nil {
			return "", nil, usage("--out: " + reasonOf(err))
		}
		root, err := os.OpenRoot(out)
		if err != nil {
			return "", nil, usage("--out: " + reasonOf(err))
		}
		abs, err := filepath.Abs(out)
		return abs, root, err
	}
	path, root, err := s.operator(c).ChecksFolder()
	if f, ok := fault.In(err); ok && f.Class == fault.NotReady {
		return "", nil, &failure{code: exitUsage, what: "Nothing is set up here, so there is no home to keep the " +
			"answers in.",
			then: "Give a folder with --out."}
	}
	return path, root, err
}
