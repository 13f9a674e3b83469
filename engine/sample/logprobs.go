package sample

import "math"

// Logprob is a token with the natural logarithm of its probability.
type Logprob struct {
	ID      int32
	Logprob float64 // at most 0; -9999 stands for anything lower, as in OpenAI's replies
}

// Lowest is what OpenAI's replies give for a token that is practically impossible; JSON has no -Inf.
const Lowest = -9999.0

// Logprobs gives the log-probability of chosen and of the n likeliest tokens, decreasing, then by id. They are the
// network's own: before penalties, bias, temperature and truncation (OpenAI takes no bias into account either), over
// the tokenizer's ids. They therefore do not depend on how the token was chosen.
func (s *Sampler) Logprobs(logits []float32, chosen int32, n int) (Logprob, []Logprob) {
	logits = logits[:s.vocabTokens]
	top := math.Inf(-1)
	for _, l := range logits {
		top = math.Max(top, float64(l))
	}
	total := 0.0
	for _, l := range logits {
		total += math.Exp(float64(l) - top)
	}
	norm := top + math.Log(total)
	of := func(id int32) Logprob { return Logprob{id, math.Max(Lowest, math.Min(0, float64(logits[id])-norm))} }

	best := make([]Logprob, 0, n+1)
	for id := range logits {
		if n == 0 || len(best) == n && logits[id] <= logits[best[n-1].ID] {
			continue
		}
		at := len(best)
		for at > 0 && logits[best[at-1].ID] < logits[id] {
			at--
		}
		best = append(best, Logprob{})
		copy(best[at+1:], best[at:])
		best[at] = of(int32(id))
		best = best[:min(len(best), n)]
	}
	return of(chosen), best
}
