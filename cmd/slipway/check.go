package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/checks/record"
	"slipway/units"
)

// A check's main line: setup -> book (what is done already) -> tasks -> answers -> report -> final names. The packages of
// checks ask and score; here are flags, files and words.

func checkVerb(s *session) *cli.Command {
	return &cli.Command{Name: "check", Usage: "check how a server answers: what it finds, what its cache does, how it calls tools", Subcommands: []*cli.Command{
		needleVerb(s), cacheVerb(s), rulerVerb(s), toolsVerb(s), compareVerb(s), allVerb(s),
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
	return &cli.StringFlag{Name: "lengths", Value: value, Usage: "tokens of the prompts, with commas between; k is 1024; left out: what the window takes"}
}

func atLeastFlag() cli.Flag {
	return &cli.Float64Flag{Name: "at-least", Usage: "end with exit code 21 when the share found in all is below this, 0 to 1"}
}

// setupOf is what every check's setup begins with.
func (s *session) setupOf(c *cli.Context, check string, server *client.Server) (record.Setup, error) {
	return s.setupWith(c, check, server, c.Int("samples"))
}

func (s *session) setupWith(c *cli.Context, check string, server *client.Server, samples int) (record.Setup, error) {
	for name, n := range map[string]int{"samples": samples, "max-tokens": c.Int("max-tokens")} {
		if n < 1 || n > 100000 {
			return record.Setup{}, usage(fmt.Sprintf("--%s is %d, and must be 1 to 100000", name, n))
		}
	}
	setup := record.Setup{Check: check, Program: version, URL: server.Base, Model: server.Model, Revision: server.Details.Revision, Seed: c.Uint64("seed"),
		Samples: samples, Lengths: []int{}, MaxTokens: c.Int("max-tokens"), Thinking: c.Bool("thinking"), Options: map[string]string{}}
	if s.verb != "check compare" && c.String("url") == "" { // our own server: its profile decides how it answers
		if set, err := s.operator(c).Settings(); err == nil {
			setup.Options["profile"] = set.Decisions.Profile.Name
		}
	}
	if policy := server.Details.PrefillPolicy; policy != "" {
		setup.Options["prefill_policy"], setup.Options["kv_format"] = policy, server.Details.KVFormat
	}
	return setup, nil
}

// countMargin is the part of a length, one in so many, by which our count of tokens may be short of the server's.
const countMargin = 50

// lengthsOf reads --lengths; where none are given, those of defaults that fit the window with an answer behind.
func lengthsOf(c *cli.Context, server *client.Server, defaults ...int) ([]int, error) {
	text, window, answer := c.String("lengths"), server.Details.WindowTokens, c.Int("max-tokens")
	var lengths []int
	if text == "" {
		for _, n := range defaults {
			if window == 0 && n <= 8192 || n+n/countMargin+answer <= window {
				lengths = append(lengths, n)
			}
		}
		if len(lengths) == 0 {
			return nil, &failure{code: exitUsage, what: fmt.Sprintf("The server's window of %s tokens is too small for the usual lengths.", units.Count(window)), then: "Give --lengths."}
		}
		return lengths, nil
	}
	for _, part := range strings.Split(text, ",") {
		part = strings.ToLower(strings.TrimSpace(part))
		digits, unit := strings.CutSuffix(part, "k")
		n, err := strconv.Atoi(digits)
		if unit {
			n *= 1024
		}
		if err != nil || n < 128 || n > 4<<20 {
			return nil, usage(fmt.Sprintf("--lengths has %q, and a length is a number of tokens from 128 on, such as 4096 or 4k", part))
		}
		if window > 0 && n+n/countMargin+answer > window {
			return nil, usage(fmt.Sprintf("--lengths has %s, which with an answer of %d tokens is beyond the server's window of %s", part, answer, units.Count(window)))
		}
		lengths = append(lengths, n)
	}
	return lengths, nil
}
