package sample

import (
	"container/heap"
	"errors"
	"math"
	"sort"
)

// ErrNotANumber says that the network gave a logit that is NaN or +Inf: no choice from it would mean anything.
var ErrNotANumber = errors.New("the network gave a logit that is not a number")

// ErrNothingAllowed says that mask, bias and padding together leave no token.
var ErrNothingAllowed = errors.New("no token is allowed here")

// Distribution is what a token is drawn from: ids with their probabilities, which sum to 1. It is never empty. The
// order is the same for the same input, and decreasing (then by id) where top_k or top_p was in force.
type Distribution struct {
	IDs   []int32
	Probs []float64
}

// Prob gives the probability of id; 0 where it was truncated away.
func (d Distribution) Prob(id int32) float64 {
	for i, other := range d.IDs {
		if other == id {
			return d.Probs[i]
		}
	}
	return 0
}

// Pick gives the token at u in [0, 1) of the cumulative distribution.
func (d Distribution) Pick(u float64) int32 {
	last := len(d.IDs) - 1
	for i, p := range d.Probs[:last] {
		if u < p {
			return d.IDs[i]
		}
		u -= p
	}
	return d.IDs[last]
}

// Sampler makes distributions of one vocabulary. It holds scratch memory: one goroutine at a time.
type Sampler struct {
	vocabTokens int
	sparse      []float32 // [V] -Inf, for the logits of a few ids; made when first needed
	adjusted    []float32 // [V] logits after penalties, bias and mask
	ids         []int32   // candidates
	weights     []float64 // their logits, then their unnormalised and at last their normalised probabilities

	idRoom     []int32 // [V] where ids and weights begin; truncation may leave them at its end
	weightRoom []float64
}

// NewSampler makes a sampler for a tokenizer of vocabTokens ids. Rows of the logits at and above it are padding of the
// network and are never chosen.
func NewSampler(vocabTokens int) *Sampler { return &Sampler{vocabTokens: vocabTokens} }

// Distribution gives the truncated distribution after logits [at least vocabTokens], which it does not change. history
// may be nil where p has no penalties. The result is valid until the next call. At temperature 0 it is one token with
// probability 1: the likeliest, the smallest id among equals.
func (s *Sampler) Distribution(logits []float32, p Params, history *History, mask Mask) (Distribution, error) {
	if len(logits) < s.vocabTokens {
		panic("sample: fewer logits than tokens")
	}
	adjusted := append(s.adjusted[:0], logits[:s.vocabTokens]...)
	s.adjusted = adjusted
	history.apply(adjusted, p)
	for id, bias := range p.LogitBias {
		adjusted[id] = float32(float64(adjusted[id]) + bias)
	}

	top, err := s.candidates(adjusted, mask)
	if err != nil {
		return Distribution{}, err
	}
	if p.Temperature == 0 {
		p.TopK, p.Temperature = 1, 1
	}
	s.keepTopK(p.TopK)
	return s.truncated(top, p), nil
}

// DistributionAmong gives the truncated distribution over some ids, each once, by their logits alone: what Distribution
// gives of a row that is -Inf elsewhere, up to rounding of sums.
func (s *Sampler) DistributionAmong(ids []int32, logits []float32, p Params, history *History, mask Mask) (Distribution,
	error) {
	if p.UsesHistory() || len(p.LogitBias) > 0 {
		if len(s.sparse) == 0 {
			s.sparse = make([]float32, s.vocabTokens)
			for i := range s.sparse {
				s.sparse[i] = float32(math.Inf(-1))
			}
		}
		for i, id := range ids {
			if int(id) < s.vocabTokens {
				s.sparse[id] = logits[i]
			}
		}
		d, err := s.Distribution(s.sparse, p, history, mask)
		for _, id := range ids {
			if int(id) < s.vocabTokens {
				s.sparse[id] = float32(math.Inf(-1))
			}
		}
		return d, err
	}
	s.ids, s.weights = s.idRoom[:0], s.weightRoom[:0]
	top := math.Inf(-1)
	for i, id := range ids {
		v := float64(logits[i])
		if v != v || v > math.MaxFloat32 {
			return Distribution{}, ErrNotANumber
		}
		if v < -math.MaxFloat32 || int(id) >= s.vocabTokens || !mask.Allows(id) {
			continue
		}
		s.ids, s.weights = append(s.ids, id), append(s.weights, v)
		top = max(top, v)
	}
	s.idRoom, s.weightRoom = s.ids, s.weights
	if len(s.ids) == 0 {
		return Distribution{}, ErrNothingAllowed
	}
	if p.Temperature == 0 {
		p.TopK, p.Temperature = 1, 1
	}
	s.keepTopK(p.TopK)
	return s.truncated(top, p), nil
}

// truncated makes a distribution of the candidates, whose largest logit is top.
func (s *Sampler) truncated(top float64, p Params) Distribution {
	for i, l := range s.weights {
		s.weights[i] = math.Exp((l - top) / p.Temperature)
	}
	s.keepTopP(p.TopP)
	s.keepMinP(p.MinP)
	total := sum(s.weights)
	for i := range s.weights {
		s.weights[i] /= total
	}
	return Distribution{s.ids, s.weights}
}

// candidates lists the allowed ids with their logits, in s.weights until they become probabilities, and gives the
// largest.
func (s *Sampler) candidates(adjusted []float32, mask Mask) (top float64, err error) {
	s.ids, s.weights = s.idRoom[:0], s.weightRoom[:0]
	top = math.Inf(-1)
	for i, l := range adjusted {
		v := float64(l)
		if v != v || v > math.MaxFloat32 {
			return 0, ErrNotANumber
		}
		if v < -math.MaxFloat32 || !mask.Allows(int32(i)) {
			continue
		}
		s.ids, s.weights = append(s.ids, int32(i)), append(s.weights, v)
		top = max(top, v)
	}
	s.idRoom, s.weightRoom = s.ids, s.weights
	if len(s.ids) == 0 {
		return 0, ErrNothingAllowed
	}
	return top, nil
}

// keepTopK leaves the k likeliest, in order. Among equals the smaller id stays. The k best so far are in front, worst
// of them first in a heap, so that almost every candidate costs one comparison.
func (s *Sampler) keepTopK(k int) {
	if k <= 0 || k >= len(s.ids) {
		return
	}
	if k == 1 { // the greedy choice of every request without temperature
		best := 0
		for i, w := range s.weights {
			if w > s.weights[best] || w == s.weights[best] && s.ids[i] < s.ids[best] {
				best = i
			}
		}
		s.ids, s.weights = append(s.ids[:0], s.ids[best]), append(s.weights[:0], s.weights[best])
		return
	}
	kept := worstFirst{candidates{s.ids[:k], s.weights[:k]}}
	heap.Init(kept)
	for i := k; i < len(s.ids); i++ {
		if s.weights[i] > s.weights[0] || s.weights[i] == s.weights[0] && s.ids[i] < s.ids[0] {
			s.ids[0], s.weights[0] = s.ids[i], s.weights[i]
			heap.Fix(kept, 0)
		}
	}
	s.ids, s.weights = s.ids[:k], s.weights[:k]
	sort.Sort(candidates{s.ids, s.weights})
}

// worstFirst turns the order around, for a heap with the worst candidate on top.
type worstFirst struct{ candidates }

func (w worstFirst) Less(i, j int) bool { return w.before(j, i) }
func (w worstFirst) Push(any)           { panic("sample: the heap of the best does not grow") }
func (w worstFirst) Pop() any           { panic("sample: the heap of the best does not shrink") }

// keepTopP leaves the smallest set of the likeliest whose mass reaches topP: a token stays while the mass before it is
// below topP.
func (s *Sampler) keepTopP(topP float64) {
	if topP >= 1 {
		return
	}
	limit := topP * sum(s.weights)
	s.selectTop(func(_ int, mass float64) bool { return mass >= limit })
}

// keepMinP drops what is less likely than minP times the likeliest, whose weight is 1 by construction.
func (s *Sampler) keepMinP(minP float64) {
	if minP == 0 {
		return
	}
	n := 0
	for i, w := range s.weights {
		if w >= minP {
			s.ids[n], s.weights[n] = s.ids[i], w
			n++
		}
	}
	s.ids, s.weights = s.ids[:n], s.weights[:n]
}

// selectTop leaves the likeliest, one after another, until enough(kept, their mass) or none is left. A heap makes this
// linear in the candidates plus a logarithm for each one kept: nuclei are small, vocabularies are not.
func (s *Sampler) selectTop(enough func(kept int, mass float64) bool) {
	h := candidates{s.ids, s.weights}
	n := len(h.ids)
	for i := n/2 - 1; i >= 0; i-- {
		h.sink(i, n)
	}
	kept, mass := 0, 0.0
	for end := n; end > 0 && !(kept > 0 && enough(kept, mass)); {
		mass += h.weights[0]
		kept++
		end--
		h.swap(0, end) // the winners gather at the back, likeliest last
		h.sink(0, end)
	}
	s.ids, s.weights = s.ids[n-kept:], s.weights[n-kept:]
	sort.Sort(candidates{s.ids, s.weights})
}

// candidates orders by decreasing weight, then by id.
type candidates struct {
	ids     []int32
	weights []float64
}

func (c candidates) Len() int           { return len(c.ids) }
func (c candidates) Swap(i, j int)      { c.swap(i, j) }
func (c candidates) Less(i, j int) bool { return c.before(i, j) }

func (c candidates) before(i, j int) bool {
	return c.weights[i] > c.weights[j] || c.weights[i] == c.weights[j] && c.ids[i] < c.ids[j]
}

func (c candidates) swap(i, j int) {
	c.ids[i], c.ids[j] = c.ids[j], c.ids[i]
	c.weights[i], c.weights[j] = c.weights[j], c.weights[i]
}

// sink restores the heap below i among the first n: the likeliest at 0.
func (c candidates) sink(i, n int) {
	for {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && c.before(child+1, child) {
			child++
		}
		if !c.before(child, i) {
			return
		}
		c.swap(i, child)
		i = child
	}
}

func sum(weights []float64) float64 {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	return total
}
