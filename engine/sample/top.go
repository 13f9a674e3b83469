package sample

import "math"

// Top is the largest logits of a row and their ids, largest first and of equal ones the smallest id first: what a
// device has chosen, so that the host need not read the row.
type Top struct {
	IDs    []int32
	Logits []float32
}

// MostTop is how many logits are chosen on a device: what a simdgroup of 32 keeps, one a lane
// (metal/kernels/top_k.metal).
const MostTop = 32

// TopWanted is how many of a row's largest logits decide the next token under p; 0 where the whole row does.
func (p Params) TopWanted() int {
	switch {
	case p.UsesHistory() || len(p.LogitBias) > 0:
		return 0
	case p.Temperature == 0:
		return 1
	case p.TopK <= MostTop:
		return p.TopK
	}
	return 0
}

// DistributionOfTop gives what Distribution gives of the whole row without history and mask, bit for bit. False where
// the choice cannot be made from top: too few, ids that are padding of the network, or a value that is no number; then
// the whole row decides. Of a row with a NaN a device gives NaN alone, so that Distribution refuses it as it would
// without a device.
func (s *Sampler) DistributionOfTop(top Top, p Params) (Distribution, bool) {
	k := p.TopWanted()
	if k == 0 || k > len(top.IDs) || k >= s.vocabTokens {
		return Distribution{}, false
	}
	s.ids, s.weights = s.idRoom[:0], s.weightRoom[:0]
	for i, id := range top.IDs[:k] {
		v := float64(top.Logits[i])
		if id < 0 || int(id) >= s.vocabTokens || !(math.Abs(v) <= math.MaxFloat32) {
			return Distribution{}, false
		}
		s.ids, s.weights = append(s.ids, id), append(s.weights, v)
	}
	s.idRoom, s.weightRoom = s.ids, s.weights
	if p.Temperature == 0 {
		p.Temperature = 1
	}
	return s.truncated(s.weights[0], p), true
}
