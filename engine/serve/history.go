package serve

import "time"

// The last hour, in steps short enough to show one request and few enough for a chart.
const (
	HistoryStep  = 20 * time.Second
	historySteps = 180
)

// Step is what happened in one HistoryStep. Tokens count when they were processed, not when their request ended.
type Step struct {
	Start time.Time
	Usage
	Ended int // requests
}

// history is the steps of the last hour in which something happened. The ledger's lock guards it.
type history struct{ steps []Step }

// at gives the step of a moment, and drops steps older than an hour.
func (h *history) at(now time.Time) *Step {
	start := now.Truncate(HistoryStep)
	if last := len(h.steps) - 1; last >= 0 && !h.steps[last].Start.Before(start) {
		return &h.steps[last] // also where the clock was set back
	}
	h.forget(now)
	h.steps = append(h.steps, Step{Start: start})
	return &h.steps[len(h.steps)-1]
}

func (h *history) forget(now time.Time) {
	oldest := now.Truncate(HistoryStep).Add(-(historySteps - 1) * HistoryStep)
	for len(h.steps) > 0 && h.steps[0].Start.Before(oldest) {
		h.steps = h.steps[1:]
	}
}

// count adds what a request's usage gained.
func (h *history) count(now time.Time, before, after Usage) {
	if before == after {
		return
	}
	s := h.at(now)
	s.CachedTokens += after.CachedTokens - before.CachedTokens
	s.ComputedTokens += after.ComputedTokens - before.ComputedTokens
	s.CompletionTokens += after.CompletionTokens - before.CompletionTokens
}

// History gives the steps of the last hour in which something happened, oldest first.
func (l *Ledger) History() []Step {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.forget(now)
	return append([]Step(nil), l.history.steps...)
}
