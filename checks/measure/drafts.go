package measure

import (
	"context"
	"fmt"
	"slices"

	"slipway/checks/client"
)

// SweepOptions of a sweep over numbers of drafted tokens.
type SweepOptions struct {
	Texts     []SweepText
	MaxTokens int // of each answer, at least leastDecoded+1
	Rounds    int // at least 1
	Thinking  bool
	Stage     func(done, of int) // called before each request; may be nil
}

// SweepText is one prompt.
type SweepText struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Sweep is what drafts gain on one server, which has one draft loaded. The texts are answered greedily without a draft
// and with each number of tokens in turn, as often as there are rounds, so that what else the machine does meets all
// alike. What can be cached is: a draft helps no prefill, and none is timed.
type Sweep struct {
	Draft   string     `json:"draft"`
	Rounds  int        `json:"rounds"`
	InForce int        `json:"in_force_tokens"` // 0: no draft
	Best    int        `json:"best_tokens"`     // 0: none gains enough
	Rows    []SweepRow `json:"rows"`            // the first without a draft
}

// SweepRow is one number of tokens drafted at a time, over all texts.
type SweepRow struct {
	Tokens        int        `json:"tokens"` // 0: no draft
	Rate          float64    `json:"decode_tokens_per_second"`
	Gain          float64    `json:"gain"` // rate over the undrafted one, the median of the rounds
	TokensPerPass float64    `json:"tokens_per_pass"`
	Acceptance    *float64   `json:"acceptance"` // of drafted tokens; null without any
	Texts         []SweepOne `json:"texts"`
}

// SweepOne is a row's part of one text.
type SweepOne struct {
	Name          string   `json:"name"`
	Gain          float64  `json:"gain"`
	TokensPerPass float64  `json:"tokens_per_pass"`
	Acceptance    *float64 `json:"acceptance"`
	Tokens        int      `json:"answer_tokens"`
	// Same: the answer is the one without a draft, word for word. On a GPU two tokens of nearly equal logits may
	// change places, as passes of several rows add up in another order.
	Same bool `json:"same_answer"`
}

// leastGain is what a draft must gain to be worth its memory; below it a difference may be chance.
const leastGain = 1.03

// swept is what was seen of one number of tokens and one text.
type swept struct {
	seconds            []float64 // of decode, by round
	tokens             int
	accepted, rejected int
	answer             string
	same               bool
}

func (s *swept) add(r *client.Reply) error {
	if r.Usage == nil || r.Usage.Decode == nil || *r.Usage.Decode <= 0 {
		return fmt.Errorf("the server does not say how long decoding took")
	}
	if r.Usage.Completion <= leastDecoded {
		return fmt.Errorf("an answer has %d tokens, and a rate needs %d after the first: give texts with "+
			"longer answers",
			r.Usage.Completion, leastDecoded)
	}
	answer := r.Reasoning + r.Text
	s.same = len(s.seconds) == 0 || s.same && answer == s.answer
	s.answer = answer
	s.seconds = append(s.seconds, r.Usage.Decode.Seconds())
	s.tokens, s.accepted, s.rejected = r.Usage.Completion, r.Usage.Accepted, r.Usage.Rejected
	return nil
}

func (s *swept) tokensPerPass() float64 {
	return float64(s.tokens-1) / float64(max(1, s.tokens-1-s.accepted))
}

func acceptance(accepted, rejected int) *float64 {
	if accepted+rejected == 0 {
		return nil
	}
	share := float64(accepted) / float64(accepted+rejected)
	return &share
}

// SweepDrafts measures. Errors: a *NoDraftError, the server's, or a sentence why nothing can be said.
func SweepDrafts(ctx context.Context, s *client.Server, o SweepOptions) (Sweep, error) {
	d := s.Details
	if d.MostDraftTokens == 0 {
		return Sweep{}, &NoDraftError{}
	}
	seen := make([][]swept, d.MostDraftTokens+1) // by number of tokens, then text
	for n := range seen {
		seen[n] = make([]swept, len(o.Texts))
	}
	of := len(o.Texts) * (1 + o.Rounds*len(seen))
	done := 0
	ask := func(text SweepText, tokens, limit int) (*client.Reply, error) {
		if o.Stage != nil {
			o.Stage(done, of)
		}
		done++
		return s.Chat(ctx, client.Request{Messages: []client.Message{client.Say("user", text.Text)}, MaxTokens: limit,
			Thinking: o.Thinking, DraftTokens: &tokens})
	}
	for _, text := range o.Texts { // fills the cache, of the draft too
		if _, err := ask(text, d.MostDraftTokens, 1); err != nil {
			return Sweep{}, err
		}
	}
	for range o.Rounds {
		for at, text := range o.Texts {
			for n := range seen {
				reply, err := ask(text, n, o.MaxTokens)
				if err == nil {
					err = seen[n][at].add(reply)
				}
				if err != nil {
					return Sweep{}, err
				}
			}
		}
	}
	return o.sweep(d, seen), nil
}

// NoDraftError: nothing drafts on this server.
type NoDraftError struct{}

func (*NoDraftError) Error() string {
	return "the server has no draft loaded, so there is nothing to sweep over"
}

func (o SweepOptions) sweep(d client.Identity, seen [][]swept) Sweep {
	result := Sweep{Draft: d.Draft, Rounds: o.Rounds, InForce: d.DraftTokens, Rows: []SweepRow{}}
	bestGain := leastGain
	for n, texts := range seen {
		row := SweepRow{Tokens: n, Texts: []SweepOne{}}
		var accepted, rejected, tokens, passes int
		var gains []float64
		var total float64
		for round := range o.Rounds {
			var without, with float64 // seconds of the tokens that follow the first, for equal numbers of them
			for at := range texts {
				with += texts[at].seconds[round] / float64(texts[at].tokens-1)
				without += seen[0][at].seconds[round] / float64(seen[0][at].tokens-1)
			}
			gains = append(gains, without/with)
			total += with
		}
		for at := range texts {
			t, plain := &texts[at], &seen[0][at]
			accepted, rejected, tokens = accepted+t.accepted, rejected+t.rejected, tokens+t.tokens-1
			passes += t.tokens - 1 - t.accepted
			gain := median(plain.seconds) / float64(plain.tokens-1) / (median(t.seconds) / float64(t.tokens-1))
			row.Texts = append(row.Texts, SweepOne{Name: o.Texts[at].Name, Tokens: t.tokens, Gain: gain,
				TokensPerPass: t.tokensPerPass(), Acceptance: acceptance(t.accepted, t.rejected),
				Same: t.same && t.answer == plain.answer})
		}
		row.Rate = float64(o.Rounds*len(texts)) / total
		row.Gain, row.Acceptance = median(gains), acceptance(accepted, rejected)
		row.TokensPerPass = float64(tokens) / float64(max(1, passes))
		if n > 0 && row.Gain >= bestGain {
			result.Best, bestGain = n, row.Gain
		}
		result.Rows = append(result.Rows, row)
	}
	return result
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
