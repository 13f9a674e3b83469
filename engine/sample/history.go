package sample

// History counts the tokens that penalties look at. As in vLLM, presence and frequency see the reply alone, repetition
// sees prompt and reply. The zero value is an empty history.
type History struct {
	prompt map[int32]struct{}
	reply  map[int32]int
}

// NewHistory begins a history; prompt may be nil where no repetition penalty is used.
func NewHistory(prompt []int32) *History {
	h := &History{prompt: make(map[int32]struct{}), reply: make(map[int32]int)}
	for _, id := range prompt {
		h.prompt[id] = struct{}{}
	}
	return h
}

// Add counts one more token of the reply.
func (h *History) Add(id int32) { h.reply[id]++ }

// Remove takes one token of the reply back that was added.
func (h *History) Remove(id int32) {
	if h.reply[id]--; h.reply[id] == 0 {
		delete(h.reply, id)
	}
}

// apply changes logits [V] by the penalties of p.
func (h *History) apply(logits []float32, p Params) {
	if h == nil || !p.UsesHistory() {
		return
	}
	if p.RepetitionPenalty != 1 {
		for id := range h.prompt {
			if h.reply[id] == 0 {
				repeat(logits, id, p.RepetitionPenalty)
			}
		}
	}
	for id, times := range h.reply {
		if int(id) >= len(logits) {
			continue
		}
		if p.RepetitionPenalty != 1 {
			repeat(logits, id, p.RepetitionPenalty)
		}
		logits[id] = float32(float64(logits[id]) - p.PresencePenalty - float64(times)*p.FrequencyPenalty)
	}
}

// repeat is the rule of CTRL (arXiv 1909.05858) as Hugging Face applies it.
func repeat(logits []float32, id int32, penalty float64) {
	if int(id) >= len(logits) {
		return
	}
	if l := float64(logits[id]); l > 0 {
		logits[id] = float32(l / penalty)
	} else {
		logits[id] = float32(l * penalty)
	}
}
