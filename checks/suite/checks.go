package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway/checks/cache"
	"slipway/checks/count"
	"slipway/checks/needle"
	"slipway/checks/record"
	"slipway/checks/ruler"
	"slipway/checks/tools"
	"slipway/units"
)

// The usual lengths of prompts, in tokens; those that fit the window are taken.
var (
	needleLengths = []int{1024, 4096, 16384, 65536, 131072, 258000}
	rulerLengths  = []int{4096, 8192, 16384, 32768, 65536, 131072, 258000}
)

// heatRows is how many depths are shown separately when codes are anywhere; mostHeatRows when they are on a grid.
const (
	heatRows     = 10
	mostHeatRows = 20
)

// setupOfLengths is the setup of a check whose prompts have counted lengths; usual are those taken where none are asked
// for.
func (r *Runner) setupOfLengths(ctx context.Context, check string, in Input, usual []int) (setup record.Setup,
	counter *count.Counter, err error) {
	if setup, err = r.setup(check, in); err != nil {
		return setup, nil, err
	}
	if setup.Lengths, err = lengths(r.Server, in, usual...); err != nil {
		return setup, nil, err
	}
	counter, err = count.New(ctx, r.Server)
	return setup, counter, err
}

// NeedleInput is the input of Needle.
type NeedleInput struct {
	Input
	Codes int `json:"codes"` // in each text, asked for together; 1 to 32
	Grid  int `json:"grid"`  // depths at which one code is placed; 0: anywhere; at most 64
}

// Check refuses values that no needle check can have.
func (in NeedleInput) Check() error {
	if in.Codes < 1 || in.Codes > 32 {
		return wrong("--codes is 1 to 32")
	}
	if in.Grid < 0 || in.Grid > 64 {
		return wrong("--grid is 1 to 64")
	}
	return in.Input.Check()
}

// Needle hides codes in long texts and asks for them.
func (r *Runner) Needle(ctx context.Context, in NeedleInput) (CheckAnswer, error) {
	if err := in.Check(); err != nil {
		return CheckAnswer{}, err
	}
	setup, counter, err := r.setupOfLengths(ctx, "needle", in.Input, needleLengths)
	if err != nil {
		return CheckAnswer{}, err
	}
	lines, err := needle.Measure(ctx, counter)
	if err != nil {
		return CheckAnswer{}, err
	}
	setup.Template, setup.Scoring, setup.Tokens = needle.Template, needle.Scoring, lines.Route
	setup.Options["codes"], setup.Options["grid"] = fmt.Sprint(in.Codes), fmt.Sprint(in.Grid)
	rows := heatRows
	if in.Grid > 1 {
		rows = min(in.Grid, mostHeatRows)
	}
	tasks := needle.Tasks(r.Server, lines, needle.Options{Lengths: setup.Lengths, Samples: setup.Samples,
		Codes: in.Codes, Grid: in.Grid, Seed: setup.Seed, MaxTokens: setup.MaxTokens, Thinking: setup.Thinking})
	return r.run(ctx, in.Input, setup, tasks, func(answers []record.Answer, report *record.Report) map[string][]byte {
		heat := needle.MapOf(answers, rows)
		report.Text = heat.Text()
		if in.Grid == 0 && in.Codes > 1 {
			report.Scores = append(report.Scores, needle.Documents(answers))
			report.Notes = append(report.Notes, "The codes of one text are asked for together, so they are less "+
				"independent than the intervals take them to be.")
		}
		report.Notes = append(report.Notes, lengthNotes(answers)...)
		return map[string][]byte{".png": heat.PNG()}
	})
}

// lengthNotes say how long the prompts really were, where the server counts.
func lengthNotes(answers []record.Answer) []string {
	least, most := map[string]int{}, map[string]int{}
	var groups []string
	for _, a := range answers {
		if a.Usage == nil {
			return []string{"The server gives no usage, so the real length of the prompts is unknown."}
		}
		if _, seen := least[a.Group]; !seen {
			groups = append(groups, a.Group)
			least[a.Group], most[a.Group] = a.Usage.Prompt, a.Usage.Prompt
		}
		least[a.Group], most[a.Group] = min(least[a.Group], a.Usage.Prompt), max(most[a.Group], a.Usage.Prompt)
	}
	var notes []string
	for _, g := range groups {
		notes = append(notes, fmt.Sprintf("%s: the server counted %s to %s.", g, units.Count(least[g]),
			units.Count(most[g])))
	}
	return notes
}

// RulerInput is the input of Ruler.
type RulerInput struct {
	Input
	Tasks []string `json:"tasks"` // of ruler.Names; empty: all
	Shots int      `json:"shots"` // 1: a solved example in front of vt and cwe, as RULER has it; 0: none
}

// Check refuses tasks that do not exist.
func (in RulerInput) Check() error {
	for _, name := range in.Tasks {
		if !slices.Contains(ruler.Names(), name) {
			return wrong("--tasks has %q; there are: %s", name, strings.Join(ruler.Names(), ", "))
		}
	}
	if in.Shots != 0 && in.Shots != 1 {
		return wrong("--shots is 0 or 1")
	}
	return in.Input.Check()
}

// Ruler puts tasks of NVIDIA's RULER.
func (r *Runner) Ruler(ctx context.Context, in RulerInput) (CheckAnswer, error) {
	if err := in.Check(); err != nil {
		return CheckAnswer{}, err
	}
	if len(in.Tasks) == 0 {
		in.Tasks = ruler.Names()
	}
	setup, counter, err := r.setupOfLengths(ctx, "ruler", in.Input, rulerLengths)
	if err != nil {
		return CheckAnswer{}, err
	}
	setup.Template, setup.Scoring, setup.Tokens = ruler.Template(in.Tasks), ruler.Scoring, counter.Route
	setup.Options["tasks"], setup.Options["shots"] = strings.Join(in.Tasks, ","), fmt.Sprint(in.Shots)
	tasks, err := ruler.Tasks(ctx, r.Server, counter, ruler.Options{Tasks: in.Tasks, Lengths: setup.Lengths,
		Samples: setup.Samples, Seed: setup.Seed, Shots: in.Shots, MaxTokens: setup.MaxTokens,
		Thinking: setup.Thinking})
	if err != nil {
		return CheckAnswer{}, tooShort(err)
	}
	return r.run(ctx, in.Input, setup, tasks, func(answers []record.Answer, report *record.Report) map[string][]byte {
		report.Notes = append(report.Notes, ruler.Differences...)
		report.Notes = append(report.Notes, lengthNotes(answers)...)
		return map[string][]byte{}
	})
}

// tooShort makes a length that a task cannot fill a mistake of the input.
func tooShort(err error) error {
	if short, ok := errors.AsType[*ruler.TooShortError](err); ok {
		return wrong("%s; choose longer --lengths or a smaller --max-tokens", short.Error())
	}
	return err
}

// CacheInput is the input of Cache.
type CacheInput struct {
	Input
	Tokens int `json:"tokens"` // length of the texts, 300 to 1048576
}

// Check refuses texts of a length that the check cannot have.
func (in CacheInput) Check() error {
	if in.Tokens < 300 || in.Tokens > 1<<20 {
		return wrong("--tokens is 300 to 1048576")
	}
	if in.Thinking {
		return wrong("check cache asks for short answers without thinking")
	}
	return in.Input.Check()
}

// spokenTokens is what is said about a text of the cache check, beside the answer.
const spokenTokens = 256

// Cache checks that the prefix cache never changes an answer.
func (r *Runner) Cache(ctx context.Context, in CacheInput) (CheckAnswer, error) {
	if err := in.Check(); err != nil {
		return CheckAnswer{}, err
	}
	setup, err := r.setup("cache", in.Input)
	if err != nil {
		return CheckAnswer{}, err
	}
	if w := r.Server.Details.WindowTokens; w > 0 && in.Tokens+in.Tokens/countMargin+setup.MaxTokens+spokenTokens > w {
		return CheckAnswer{}, wrong("texts of %s tokens and what is said about them are beyond the server's "+
			"window of %s",
			units.Count(in.Tokens), units.Count(w))
	}
	counter, err := count.New(ctx, r.Server)
	if err != nil {
		return CheckAnswer{}, err
	}
	lines, err := needle.Measure(ctx, counter)
	if err != nil {
		return CheckAnswer{}, err
	}
	setup.Lengths, setup.Template, setup.Scoring, setup.Tokens = []int{in.Tokens}, cache.Template, cache.Scoring,
		lines.Route
	tasks := cache.Tasks(r.Server, lines, cache.Options{Tokens: in.Tokens, Samples: setup.Samples, Seed: setup.Seed,
		MaxTokens: setup.MaxTokens, Nonce: randomWord})
	return r.run(ctx, in.Input, setup, tasks, func(answers []record.Answer, report *record.Report) map[string][]byte {
		report.Findings, report.Scores = cache.Findings(answers), []record.Score{}
		return map[string][]byte{}
	})
}

// Tools checks how functions are called.
func (r *Runner) Tools(ctx context.Context, in Input) (CheckAnswer, error) {
	setup, err := r.setup("tools", in)
	if err != nil {
		return CheckAnswer{}, err
	}
	setup.Template, setup.Scoring, setup.Tokens = tools.Template, tools.Scoring, "by the server's usage"
	tasks := tools.Tasks(r.Server, tools.Options{Samples: setup.Samples, Seed: setup.Seed, MaxTokens: setup.MaxTokens,
		Thinking: setup.Thinking})
	return r.run(ctx, in, setup, tasks, func(answers []record.Answer, report *record.Report) map[string][]byte {
		report.Findings = tools.Findings(answers)
		return map[string][]byte{}
	})
}
