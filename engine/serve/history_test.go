package serve

import (
	"testing"
	"time"
)

// A chart must not show the tokens of a request twice, nor all of them when it ends, nor what happened hours ago.
func TestHistoryCountsEachTokenOnceInItsStep(t *testing.T) {
	start := time.Unix(1_700_000_000, 0).Truncate(HistoryStep)
	var h history
	first, second := Usage{CachedTokens: 100}, Usage{CachedTokens: 100, ComputedTokens: 50}
	last := Usage{CachedTokens: 100, ComputedTokens: 60, CompletionTokens: 7}
	h.count(start, Usage{}, first)
	h.count(start.Add(time.Second), first, second)
	h.count(start.Add(3*HistoryStep), second, last)
	h.count(start.Add(3*HistoryStep), last, last)
	h.at(start.Add(3*HistoryStep-time.Hour/2)).Ended++ // the clock was set back
	want := []Step{{Start: start, Usage: second},
		{Start: start.Add(3 * HistoryStep), Usage: Usage{ComputedTokens: 10, CompletionTokens: 7}, Ended: 1}}
	if len(h.steps) != 2 || h.steps[0] != want[0] || h.steps[1] != want[1] {
		t.Fatalf("%+v, want %+v", h.steps, want)
	}
	h.forget(start.Add(time.Hour))
	if len(h.steps) != 1 || h.steps[0] != want[1] {
		t.Fatalf("after an hour: %+v", h.steps)
	}
	for i := range 10 * historySteps {
		h.at(start.Add(time.Duration(i)*HistoryStep)).Ended++
	}
	if len(h.steps) != historySteps {
		t.Fatalf("%d steps are kept", len(h.steps))
	}
}
