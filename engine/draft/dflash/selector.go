package dflash

import "math"

// candidates gives the ids of one masked row's candidates and their logits, largest first.
func (n *Network) candidates(row int, ids []int32, logits []float32) ([]int32, []float32) {
	w, k := &n.work, n.config.TopK
	for i, id := range w.ids.Floats()[row*k:][:k] {
		l := w.values.Floats()[row*k+i] * n.config.Multiplier
		if softcap := n.config.Softcap; softcap > 0 {
			l = softcap * float32(math.Tanh(float64(l/softcap)))
		}
		ids, logits = append(ids, int32(id)), append(logits, l)
	}
	return ids, logits
}

// score adds to the candidates' logits what the selector knows of them after token before:
// Σ_r predecessor[before,r]·hidden[r]·successor[candidate,r].
func (n *Network) score(row int, before int32, ids []int32, logits []float32) {
	r := n.config.Rank
	hidden := n.work.hidden.Floats()[row*r:][:r]
	mixed, other := n.mixed[:r], n.mixed[r:]
	n.predecessor.Row(mixed, int(before))
	for i := range mixed {
		mixed[i] *= hidden[i]
	}
	for i, id := range ids {
		if id < 0 {
			continue // of a row that is no number
		}
		n.successor.Row(other, int(id))
		var sum float32
		for k, v := range other {
			sum += mixed[k] * v
		}
		logits[i] += sum
	}
}
