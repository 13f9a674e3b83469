package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/checks/compare"
	"slipway/checks/count"
	"slipway/checks/needle"
	"slipway/checks/record"
	"slipway/checks/ruler"
	"slipway/termtext"
)

// compareAnswer is the data of check compare.
type compareAnswer struct {
	A        sideAnswer       `json:"a"`
	B        sideAnswer       `json:"b"`
	Decision compare.Decision `json:"decision"`
	Tasks    int              `json:"tasks"`
	Same     int              `json:"same_answers"`
	ABetter  int              `json:"a_better"`
	BBetter  int              `json:"b_better"`
	P        float64          `json:"p"`
	Shift    float64          `json:"shift"` // mean of B's share less A's
	Low      float64          `json:"shift_low"`
	High     float64          `json:"shift_high"`
	Groups   []groupAnswer    `json:"groups"`
}

type sideAnswer struct {
	Setup  record.Setup `json:"setup"`
	File   string       `json:"answers"`
	Score  record.Score `json:"score"`
	Doubts []string     `json:"doubts"`
}

type groupAnswer struct {
	Name string       `json:"name"`
	A    record.Score `json:"a"`
	B    record.Score `json:"b"`
}

// comparedTasks are those of ruler that stand beside the codes.
var comparedTasks = []string{"niah_multikey_2", "vt", "fwe"}

func compareVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "put the same tasks to two servers, or compare two finished runs", ArgsUsage: "A B",
		Flags: append(append(urlFlags()[1:], homeFlag(), lengthsFlag(""),
			&cli.StringFlag{Name: "model", Usage: "model of A; left out: its only one"},
			&cli.StringFlag{Name: "model-b", Usage: "model of B"},
			&cli.StringFlag{Name: "key-env-b", Usage: "name of the environment variable that holds B's key"},
			&cli.StringFlag{Name: "key-file-b", Usage: "file that holds B's key"}), recordFlags(10, 256)...),
		Action: func(c *cli.Context) error {
			a, b := c.Args().Get(0), c.Args().Get(1)
			if c.Args().Len() != 2 {
				return usage("check compare needs two addresses, or two files of finished runs")
			}
			files := strings.HasSuffix(a, ".jsonl")
			if files != strings.HasSuffix(b, ".jsonl") {
				return usage("check compare needs two addresses or two files, not one of each")
			}
			sides := [2]side{{file: a}, {file: b}}
			if !files {
				var err error
				if sides, err = s.askBoth(c, a, b); err != nil {
					return err
				}
			}
			return s.compareSides(sides)
		},
	}
}

// side is one run of a comparison; file is read where doubts are nil.
type side struct {
	file   string
	doubts []string
}

// askBoth makes the tasks once, by the first server's count of tokens, and puts them to both.
func (s *session) askBoth(c *cli.Context, a, b string) (sides [2]side, err error) {
	keyB, err := keyNamed(c.String("key-env-b"), c.String("key-file-b"))
	if err != nil {
		return sides, err
	}
	keyA, err := keyOf(c)
	if err != nil {
		return sides, err
	}
	servers := [2]*client.Server{}
	for i, at := range []struct{ address, model, key string }{{a, c.String("model"), keyA}, {b, c.String("model-b"), keyB}} {
		if servers[i], err = client.New(at.address, at.model, at.key); err != nil {
			return sides, err
		}
		servers[i].Patience = c.Duration("patience")
		if err := servers[i].Identify(s.ctx); err != nil {
			return sides, err
		}
	}
	setup, err := s.setupOf(c, "compare", servers[0])
	if err != nil {
		return sides, err
	}
	narrow := servers[0]
	if w := servers[1].Details.WindowTokens; w > 0 && (w < narrow.Details.WindowTokens || narrow.Details.WindowTokens == 0) {
		narrow = servers[1]
	}
	if setup.Lengths, err = lengthsOf(c, narrow, 2048, 8192); err != nil {
		return sides, err
	}
	counter, err := count.New(s.ctx, servers[0])
	if err != nil {
		return sides, err
	}
	lines, err := needle.Measure(s.ctx, counter)
	if err != nil {
		return sides, err
	}
	setup.Tokens, setup.Template = counter.Route, needle.Template+"\n\n"+ruler.Template(comparedTasks)
	setup.Scoring = "codes: " + needle.Scoring + "; the others: " + ruler.Scoring
	for i, server := range servers {
		tasks, err := comparisonTasks(s, server, counter, lines, setup)
		if err != nil {
			return sides, err
		}
		own := setup
		own.URL, own.Model, own.Revision = server.Base, server.Model, server.Details.Revision
		own.Options = map[string]string{"side": "ab"[i : i+1]}
		if policy := server.Details.PrefillPolicy; policy != "" {
			own.Options["prefill_policy"] = policy
		}
		report, err := s.runCheck(c, own, tasks, nil)
		if err != nil {
			return sides, err
		}
		sides[i] = side{report.Answers, report.Doubts}
	}
	return sides, nil
}

func comparisonTasks(s *session, server *client.Server, counter *count.Counter, lines *needle.Ruler, setup record.Setup) ([]record.Task, error) {
	tasks := needle.Tasks(server, lines, needle.Options{Lengths: setup.Lengths, Samples: setup.Samples, Codes: 4, Seed: setup.Seed, MaxTokens: setup.MaxTokens, Thinking: setup.Thinking})
	more, err := ruler.Tasks(s.ctx, server, counter, ruler.Options{Tasks: comparedTasks, Lengths: setup.Lengths, Samples: setup.Samples, Seed: setup.Seed, MaxTokens: setup.MaxTokens, Thinking: setup.Thinking})
	if short, ok := errors.AsType[*ruler.TooShortError](err); ok {
		return nil, usage(short.Error() + "; choose longer --lengths or a smaller --max-tokens")
	}
	return append(tasks, more...), err
}

func (s *session) compareSides(sides [2]side) error {
	var setups [2]record.Setup
	var answers [2][]record.Answer
	for i, side := range sides {
		var err error
		if setups[i], answers[i], err = record.Read(side.file); err != nil {
			if damaged, ok := errors.AsType[*record.DamagedError](err); ok {
				return &failure{code: exitDamage, what: sentence(damaged.Error()), then: "Compare finished runs."}
			}
			return usage(side.file + ": " + reasonOf(err))
		}
	}
	r, err := compare.Pair(setups[0], answers[0], setups[1], answers[1])
	if unlike, ok := errors.AsType[*compare.UnlikeError](err); ok {
		return &failure{code: exitStale, what: sentence(unlike.Error()), then: "Run both with the same flags."}
	}
	if err != nil {
		return err
	}
	answer := compareAnswer{
		A: sideAnswer{r.A, absolute(sides[0].file), r.ScoreA, record.DoubtsOf(answers[0])}, B: sideAnswer{r.B, absolute(sides[1].file), r.ScoreB, record.DoubtsOf(answers[1])},
		Decision: r.Decision, Tasks: r.Tasks, Same: r.Same, ABetter: r.ABetter, BBetter: r.BBetter, P: r.P, Shift: r.Shift, Low: r.Low, High: r.High, Groups: []groupAnswer{},
	}
	for _, g := range r.Groups {
		answer.Groups = append(answer.Groups, groupAnswer{g.Name, g.A, g.B})
	}
	code := exitOK
	if r.Decision == compare.Worse || len(answer.A.Doubts)+len(answer.B.Doubts) > 0 {
		code = exitCheckFailed
	}
	return s.result(code, answer, func(w io.Writer) { printCompare(w, answer) })
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func printCompare(w io.Writer, a compareAnswer) {
	for i, side := range []sideAnswer{a.A, a.B} {
		fmt.Fprintf(w, "%c: %s at %s%s\n", 'A'+i, termtext.Line(side.Setup.Model), side.Setup.URL, profileWord(side.Setup))
	}
	fmt.Fprintf(w, "  %-34s %10s %10s\n", "", "A", "B")
	for _, g := range append(a.Groups, groupAnswer{"all", a.A.Score, a.B.Score}) {
		fmt.Fprintf(w, "  %-34s %10s %10s\n", g.Name, fmt.Sprintf("%d/%d", g.A.Hits, g.A.Of), fmt.Sprintf("%d/%d", g.B.Hits, g.B.Of))
	}
	fmt.Fprintf(w, "  %d tasks: A better in %d, B better in %d, the same answer in %d\n", a.Tasks, a.ABetter, a.BBetter, a.Same)
	fmt.Fprintf(w, "  B's share less A's: %+.1f points, 95 %% interval %+.1f to %+.1f; sign test p = %.3f\n", a.Shift*100, a.Low*100, a.High*100, a.P)
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
	for i, side := range []sideAnswer{a.A, a.B} {
		for _, d := range side.Doubts {
			fmt.Fprintf(w, "  WRONG in %c: %s\n", 'A'+i, termtext.Line(d))
		}
		fmt.Fprintf(w, "  %c's answers: %s\n", 'A'+i, termtext.Line(side.File))
	}
}

// profileWord tells what may differ between two runs of one server.
func profileWord(setup record.Setup) string {
	text := ""
	for _, name := range []string{"profile", "prefill_policy"} {
		if value := setup.Options[name]; value != "" {
			text += ", " + strings.ReplaceAll(name, "_", " ") + " " + termtext.Line(value)
		}
	}
	return text
}
