package suite

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"slipway/checks/client"
	"slipway/checks/compare"
	"slipway/checks/count"
	"slipway/checks/needle"
	"slipway/checks/record"
	"slipway/checks/ruler"
	"slipway/fault"
)

// CompareAnswer is the answer of Compare and CompareRuns.
type CompareAnswer struct {
	A        Side             `json:"a"`
	B        Side             `json:"b"`
	Decision compare.Decision `json:"decision"`
	Tasks    int              `json:"tasks"`
	Same     int              `json:"same_answers"`
	ABetter  int              `json:"a_better"`
	BBetter  int              `json:"b_better"`
	P        float64          `json:"p"`
	Shift    float64          `json:"shift"` // mean of B's share less A's
	Low      float64          `json:"shift_low"`
	High     float64          `json:"shift_high"`
	Groups   []Group          `json:"groups"`
}

// Class is CheckFailed where B is worse, or one of the runs is in doubt.
func (a CompareAnswer) Class() fault.Class {
	if a.Decision == compare.Worse || len(a.A.Doubts)+len(a.B.Doubts) > 0 {
		return fault.CheckFailed
	}
	return fault.OK
}

// Side is one run of a comparison.
type Side struct {
	Setup  record.Setup `json:"setup"`
	File   string       `json:"answers"`
	Score  record.Score `json:"score"`
	Doubts []string     `json:"doubts"`
}

// Group is the tasks of one kind.
type Group struct {
	Name string       `json:"name"`
	A    record.Score `json:"a"`
	B    record.Score `json:"b"`
}

// comparedTasks are those of RULER that go beside the codes.
var comparedTasks = []string{"niah_multikey_2", "vt", "fwe"}

// compareLengths are the usual lengths of a comparison, in tokens.
var compareLengths = []int{2048, 8192}

// Compare makes the tasks once, by the count of tokens of this server, A, puts them to both, and compares the runs.
func (r *Runner) Compare(ctx context.Context, b *client.Server, in Input) (CompareAnswer, error) {
	setup, err := r.setup("compare", in)
	if err != nil {
		return CompareAnswer{}, err
	}
	narrow := r.Server
	if w := b.Details.WindowTokens; w > 0 && (w < narrow.Details.WindowTokens || narrow.Details.WindowTokens == 0) {
		narrow = b
	}
	if setup.Lengths, err = lengths(narrow, in, compareLengths...); err != nil {
		return CompareAnswer{}, err
	}
	counter, err := count.New(ctx, r.Server)
	if err != nil {
		return CompareAnswer{}, err
	}
	lines, err := needle.Measure(ctx, counter)
	if err != nil {
		return CompareAnswer{}, err
	}
	setup.Tokens, setup.Template = counter.Route, needle.Template+"\n\n"+ruler.Template(comparedTasks)
	setup.Scoring = "codes: " + needle.Scoring + "; the others: " + ruler.Scoring
	var files [2]string
	for i, server := range []*client.Server{r.Server, b} {
		tasks := needle.Tasks(server, lines, needle.Options{Lengths: setup.Lengths, Samples: setup.Samples, Codes: 4,
			Seed:      setup.Seed,
			MaxTokens: setup.MaxTokens, Thinking: setup.Thinking})
		more, err := ruler.Tasks(ctx, server, counter, ruler.Options{Tasks: comparedTasks, Lengths: setup.Lengths,
			Samples: setup.Samples,
			Seed:    setup.Seed, MaxTokens: setup.MaxTokens, Thinking: setup.Thinking})
		if err != nil {
			return CompareAnswer{}, tooShort(err)
		}
		own := setup
		own.URL, own.Model, own.Revision = server.Base, server.Model, server.Details.Revision
		own.Options = map[string]string{"side": "ab"[i : i+1]}
		if n := server.DraftTokens; n != nil {
			own.Options["draft_tokens"] = strconv.Itoa(*n)
		}
		if policy := server.Details.PrefillPolicy; policy != "" {
			own.Options["prefill_policy"] = policy
		}
		report, err := r.report(ctx, in, own, append(tasks, more...), nil)
		if err != nil {
			return CompareAnswer{}, err
		}
		files[i] = report.Answers
	}
	return CompareRuns(files[0], files[1])
}

// RunError is a run that cannot be compared.
type RunError struct {
	Text string
	Of   fault.Fault
}

func (e *RunError) Error() string { return e.Text }

// Fault: see package fault.
func (e *RunError) Fault() fault.Fault { return e.Of }

// CompareRuns compares two finished runs by their files of answers.
func CompareRuns(a, b string) (CompareAnswer, error) {
	var setups [2]record.Setup
	var answers [2][]record.Answer
	files := [2]string{a, b}
	for i, file := range files {
		var err error
		if setups[i], answers[i], err = record.Read(file); err != nil {
			if errors.As(err, new(*record.DamagedError)) {
				return CompareAnswer{}, &RunError{
					err.Error(), fault.Fault{Class: fault.Integrity, Step: fault.CompareFinished}}
			}
			if at, ok := errors.AsType[*fs.PathError](err); ok {
				err = at.Err
			}
			return CompareAnswer{}, wrong("%s: %v", file, err)
		}
		if abs, err := filepath.Abs(file); err == nil {
			files[i] = abs
		}
	}
	r, err := compare.Pair(setups[0], answers[0], setups[1], answers[1])
	if errors.As(err, new(*compare.UnlikeError)) {
		return CompareAnswer{}, &RunError{err.Error(), fault.Fault{Class: fault.Stale, Step: fault.SameFlags}}
	}
	if err != nil {
		return CompareAnswer{}, err
	}
	answer := CompareAnswer{
		A: Side{r.A, files[0], r.ScoreA, record.DoubtsOf(answers[0])}, B: Side{r.B, files[1], r.ScoreB,
			record.DoubtsOf(answers[1])},
		Decision: r.Decision, Tasks: r.Tasks, Same: r.Same, ABetter: r.ABetter, BBetter: r.BBetter, P: r.P,
		Shift: r.Shift,
		Low:   r.Low, High: r.High,
		Groups: []Group{},
	}
	for _, g := range r.Groups {
		answer.Groups = append(answer.Groups, Group{g.Name, g.A, g.B})
	}
	return answer, nil
}
