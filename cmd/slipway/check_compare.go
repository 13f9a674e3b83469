package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/compare"
	"slipway/checks/record"
	"slipway/checks/suite"
	"slipway/installer/operate"
	"slipway/termtext"
)

func checkCompareVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "put the same tasks to two servers, or compare two finished runs", ArgsUsage: "A B",
		Flags: append(append(urlFlags()[1:], homeFlag(), lengthsFlag(""),
			&cli.StringFlag{Name: "model", Usage: "model of A; left out: its only one"},
			&cli.StringFlag{Name: "model-b", Usage: "model of B"},
			&cli.StringFlag{Name: "key-env-b", Usage: "name of the environment variable that holds B's key"},
			&cli.StringFlag{Name: "key-file-b", Usage: "file that holds B's key"},
			&cli.IntFlag{Name: "draft-tokens", Usage: "tokens that A drafts at a time, 0: none; left out: as A is set"},
			&cli.IntFlag{Name: "draft-tokens-b", Usage: "the same of B, which may be the same server"}),
			recordFlags(10, 256)...),
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 2 {
				return usage("check compare needs two addresses, or two files of finished runs")
			}
			in, err := s.compareInput(c, c.Args().Get(0), c.Args().Get(1))
			if err != nil {
				return err
			}
			answer, err := s.operator(c).CheckCompare(s.ctx, in)
			return s.answer(answer, err, func(w io.Writer) { printCompare(w, answer) })
		},
	}
}

// compareInput reads the flags of check compare. What ends with .jsonl is a file of a finished run.
func (s *session) compareInput(c *cli.Context, a, b string) (in operate.CompareInput, err error) {
	if in.Input, err = checkInput(c); err != nil {
		return in, err
	}
	in.Out = c.String("out")
	if in.A, err = s.judged(c); err != nil {
		return in, err
	}
	in.B = in.A
	in.B.Model = c.String("model-b")
	if in.B.Key, err = s.keyNamed(c.String("key-env-b"), c.String("key-file-b")); err != nil {
		return in, err
	}
	for _, side := range []struct {
		named, flag string
		file        *string
		server      *operate.ServerInput
	}{{a, "draft-tokens", &in.FileA, &in.A}, {b, "draft-tokens-b", &in.FileB, &in.B}} {
		if strings.HasSuffix(side.named, ".jsonl") {
			*side.file = side.named
		} else {
			side.server.URL = side.named
		}
		if n := c.Int(side.flag); c.IsSet(side.flag) {
			side.server.DraftTokens = &n
		}
	}
	return in, nil
}

func printCompare(w io.Writer, a suite.CompareAnswer) {
	for i, side := range []suite.Side{a.A, a.B} {
		fmt.Fprintf(w, "%c: %s at %s%s\n", 'A'+i, termtext.Line(side.Setup.Model), side.Setup.URL,
			profileWord(side.Setup))
	}
	fmt.Fprintf(w, "  %-34s %10s %10s\n", "", "A", "B")
	for _, g := range append(a.Groups, suite.Group{Name: "all", A: a.A.Score, B: a.B.Score}) {
		fmt.Fprintf(w, "  %-34s %10s %10s\n", g.Name, fmt.Sprintf("%d/%d", g.A.Hits, g.A.Of),
			fmt.Sprintf("%d/%d", g.B.Hits, g.B.Of))
	}
	fmt.Fprintf(w, "  %d tasks: A better in %d, B better in %d, the same answer in %d\n", a.Tasks, a.ABetter, a.BBetter,
		a.Same)
	fmt.Fprintf(w, "  B's share less A's: %+.1f points, 95 %% interval %+.1f to %+.1f; sign test p = %.3f\n",
		a.Shift*100,
		a.Low*100, a.High*100, a.P)
	switch a.Decision {
	case compare.Worse:
		fmt.Fprintln(w, "  B is worse than A.")
	case compare.Better:
		fmt.Fprintln(w, "  B is better than A.")
	case compare.Identical:
		fmt.Fprintln(w, "  Both gave the same answers, word for word.")
	default:
		fmt.Fprintln(w, "  The two are not told apart: a difference inside the interval may be there.")
	}
	for i, side := range []suite.Side{a.A, a.B} {
		for _, d := range side.Doubts {
			fmt.Fprintf(w, "  WRONG in %c: %s\n", 'A'+i, termtext.Line(d))
		}
		fmt.Fprintf(w, "  %c's answers: %s\n", 'A'+i, termtext.Line(side.File))
	}
}

// profileWord distinguishes what may differ between two runs of one server.
func profileWord(setup record.Setup) string {
	text := ""
	for _, name := range []string{"profile", "prefill_policy", "draft_tokens"} {
		if value := setup.Options[name]; value != "" {
			text += ", " + strings.ReplaceAll(name, "_", " ") + " " + termtext.Line(value)
		}
	}
	return text
}
