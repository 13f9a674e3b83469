package measure

import (
	"slices"
)

// Spread is one number over the runs that may be put together: those that computed the same share of their prompt.
// A run that found its prompt cached is another contest than one that did not.
type Spread struct {
	Name   string  `json:"name"`
	Whose  string  `json:"whose"`
	Group  string  `json:"group"` // "cold": little was cached; "warm": much was; "cache not told"
	Runs   int     `json:"runs"`
	Least  float64 `json:"least"`
	Median float64 `json:"median"`
	Most   float64 `json:"most"`
}

// group names the contest that a run belongs to.
func (r Run) group() string {
	switch {
	case r.Cached == nil:
		return "cache not told"
	case *r.Cached <= headTokens:
		return "cold"
	}
	return "warm"
}

// summarise makes the spreads of the numbers that repeat, in a fixed order. One run alone is no spread.
func summarise(runs []Run) []Spread {
	all := []Spread{}
	for _, group := range []string{"cold", "warm", "cache not told"} {
		for _, number := range []struct {
			name string
			of   func(Run) *float64
		}{
			{"first_token_seconds", func(r Run) *float64 { return r.FirstToken }},
			{"prefill_seconds", func(r Run) *float64 { return r.Prefill }},
			{"prefill_tokens_per_second", func(r Run) *float64 { return r.PrefillRate }},
			{"decode_tokens_per_second", func(r Run) *float64 { return r.DecodeRate }},
		} {
			var values []float64
			whose := ""
			for _, r := range runs {
				if v := number.of(r); v != nil && r.group() == group {
					values, whose = append(values, *v), r.Whose[number.name]
				}
			}
			if len(values) < 2 {
				continue
			}
			slices.Sort(values)
			middle := values[len(values)/2]
			if len(values)%2 == 0 {
				middle = (middle + values[len(values)/2-1]) / 2
			}
			all = append(all, Spread{number.name, whose, group, len(values), values[0], middle, values[len(values)-1]})
		}
	}
	return all
}
