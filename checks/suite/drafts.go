package suite

import (
	"cmp"
	"context"
	"errors"

	"slipway/checks/client"
	"slipway/checks/filler"
	"slipway/checks/measure"
	"slipway/fault"
)

// SweepInput is the input of SweepDrafts.
type SweepInput struct {
	Texts     []measure.SweepText `json:"texts"`      // empty: SweepTexts
	MaxTokens int                 `json:"max_tokens"` // of each answer, 32 to 100000
	Rounds    int                 `json:"rounds"`     // 1 to 100; 0: 3
	Thinking  bool                `json:"thinking"`
	Stage     func(done, of int)  `json:"-"` // called before each request; may be nil
}

// sweepRounds is how many rounds a sweep has unless another number is asked for: the middle one is taken.
const sweepRounds = 3

// Check refuses values that no sweep can have. Error: *InputError, which names the flag.
func (in SweepInput) Check() error {
	switch {
	case in.MaxTokens < 32 || in.MaxTokens > mostOfAnything:
		return wrong("--max-tokens is %d, and must be 32 to %d for a sweep", in.MaxTokens, mostOfAnything)
	case in.Rounds < 0 || in.Rounds > 100:
		return wrong("--repeat is %d, and must be 1 to 100 for a sweep", in.Rounds)
	}
	return nil
}

// SweepAnswer is the answer of SweepDrafts.
type SweepAnswer struct {
	Server client.Identity `json:"server"`
	URL    string          `json:"url"`
	Sweep  measure.Sweep   `json:"sweep"`
	// Kept: the best number of tokens is in force, and is used again after a restart.
	Kept bool `json:"kept"`
}

// SweepTexts are prompts of ours: an answer that repeats a form, which drafts guess best, code, and prose.
func SweepTexts() []measure.SweepText {
	return []measure.SweepText{
		{Name: "list as JSON", Text: filler.Text(20) + "\n\nList 40 made-up access codes of six digits as a " +
			"JSON array " +
			`of objects {"name": ..., "code": ...}, one a line, and nothing else.`},
		{Name: "code", Text: "Write a function in Go that reads a CSV file and returns its rows as maps by " +
			"column name, " +
			"with error handling and a test."},
		{Name: "prose", Text: "Explain to a new colleague, in several paragraphs, how a library lends books."},
	}
}

// SweepDrafts measures what each number of drafted tokens gains on the server. Errors: *InputError, *client.Fault.
func (r *Runner) SweepDrafts(ctx context.Context, in SweepInput) (SweepAnswer, error) {
	if err := in.Check(); err != nil {
		return SweepAnswer{}, err
	}
	in.Rounds = cmp.Or(in.Rounds, sweepRounds)
	if len(in.Texts) == 0 {
		in.Texts = SweepTexts()
	}
	sweep, err := measure.SweepDrafts(ctx, r.Server, measure.SweepOptions{Texts: in.Texts, MaxTokens: in.MaxTokens,
		Rounds: in.Rounds, Thinking: in.Thinking, Stage: in.Stage})
	if none, ok := errors.AsType[*measure.NoDraftError](err); ok {
		return SweepAnswer{}, &InputError{Text: none.Error() + ": start it with a draft", Step: fault.ReadHelp}
	}
	return SweepAnswer{Server: r.Server.Details, URL: r.Server.Base, Sweep: sweep}, err
}
