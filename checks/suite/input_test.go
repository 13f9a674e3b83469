package suite

import (
	"errors"
	"strings"
	"testing"

	"slipway/checks/client"
)

// No server is asked for what no run can have: any caller gets the refusal that the command line gives.
func TestImpossibleInputIsRefusedBeforeAServerIsAsked(t *testing.T) {
	r := &Runner{Server: &client.Server{}} // asks nobody: it has no address
	good := Input{Samples: 1, MaxTokens: 1, Lengths: []int{128, 4 << 20}}
	if err := good.Check(); err != nil {
		t.Fatalf("%+v: %v", good, err)
	}
	with := func(change func(*Input)) Input {
		in := good
		change(&in)
		return in
	}
	short := with(func(in *Input) { in.Lengths = []int{127} })
	needle := func(in Input) error {
		_, err := r.Needle(t.Context(), NeedleInput{Input: in, Codes: 1})
		return err
	}
	for _, c := range []struct {
		names string
		err   error
	}{
		{"--samples is 0", needle(with(func(in *Input) { in.Samples = 0 }))},
		{"--max-tokens is 100001", needle(with(func(in *Input) { in.MaxTokens = 100001 }))},
		{"--lengths has 127", needle(short)},
		{"--lengths has 4194305", needle(with(func(in *Input) { in.Lengths = []int{4<<20 + 1} }))},
		{"--at-least is 1.5", needle(with(func(in *Input) { in.AtLeast = 1.5 }))},
		{"--name is", needle(with(func(in *Input) { in.Name = "../x" }))},
		{"--lengths has 127", second(r.Ruler(t.Context(), RulerInput{Input: short}))},
		{"--lengths has 127", second(r.Cache(t.Context(), CacheInput{Input: short, Tokens: 300}))},
		{"--lengths has 127", second(r.Tools(t.Context(), short))},
		{"--lengths has 127", second(r.Compare(t.Context(), &client.Server{}, short))},
		{"--samples is -1", second(r.All(t.Context(), with(func(in *Input) { in.Samples = -1 })))},
		{"--max-tokens is 0", second(r.Measure(t.Context(), MeasureInput{Repeat: 1}))},
		{"--repeat is 0", second(r.Measure(t.Context(), MeasureInput{MaxTokens: 1}))},
		{"--max-tokens is 31", second(r.SweepDrafts(t.Context(), SweepInput{MaxTokens: 31}))},
		{"--repeat is -1", second(r.SweepDrafts(t.Context(), SweepInput{MaxTokens: 32, Rounds: -1}))},
	} {
		if wrong, ok := errors.AsType[*InputError](c.err); !ok || !strings.Contains(wrong.Text, c.names) {
			t.Errorf("wanted %q: %v", c.names, c.err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
