package serve

import (
	"strings"
	"testing"
	"time"
)

func TestGuardSwitchesDraftingOffOnlyWhereItLoses(t *testing.T) {
	for _, c := range []struct {
		name   string
		single time.Duration
		tokens []int // of drafted steps, each of which takes 16 ms; repeated
		steps  int
		off    int // step at which it is switched off; 0: never
	}{
		{"every proposal is rejected", 13 * time.Millisecond, []int{1}, 100, guardSoon},
		{"four tokens of time are lost", 10 * time.Millisecond, []int{1}, 100, 7},
		{"nothing of long blocks is accepted", 4 * time.Millisecond, []int{1}, 100, guardFirst},
		{"every proposal is accepted", 10 * time.Millisecond, []int{2}, 200, 0},
		{"a close loss waits for more steps", 10 * time.Millisecond, []int{1, 2}, 200, guardEvery},
		{"what single steps cost is unknown", 0, []int{1}, 200, 0},
		{"a draft that costs nothing", 16 * time.Millisecond, []int{1}, 200, 0},
	} {
		g, r, at := guard{}, guarded{}, 0
		if c.single > 0 {
			for range learnedSteps {
				g.learn(c.single)
			}
		}
		for i := range c.steps {
			off := r.judge(&g, c.tokens[i%len(c.tokens)], 16*time.Millisecond)
			if off != "" {
				if at = i + 1; !strings.Contains(off, "drafting is off for this request") {
					t.Errorf("%s: %q", c.name, off)
				}
				break
			}
		}
		if at != c.off {
			t.Errorf("%s: drafting is switched off at step %d, wanted %d", c.name, at, c.off)
		}
	}
}

func TestGuardLooksAtRecentSteps(t *testing.T) {
	g, r := guard{}, guarded{}
	for range learnedSteps {
		g.learn(10 * time.Millisecond)
	}
	for i := range 20 * guardEvery { // a list of codes, then prose
		tokens := 2
		if i >= 10*guardEvery {
			tokens = 1
		}
		if off := r.judge(&g, tokens, 16*time.Millisecond); off != "" {
			if i >= 10*guardEvery && i < 11*guardEvery {
				return
			}
			t.Fatalf("at step %d: %s", i, off)
		}
	}
	t.Error("a draft that is always wrong from step 320 on is never switched off")
}
