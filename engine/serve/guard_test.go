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
		{"two tokens of time are lost", 10 * time.Millisecond, []int{1}, 100, 4},
		{"nothing of long blocks is accepted", 4 * time.Millisecond, []int{1}, 100, guardFirst},
		{"a long block is rejected once", 4 * time.Millisecond, []int{1, 8}, 200, 0},
		{"every proposal is accepted", 10 * time.Millisecond, []int{2}, 200, 0},
		{"a close loss waits for more steps", 10 * time.Millisecond, []int{2, 1}, 200, guardClose + trialPairs},
		{"a closer one for even more", 10500 * time.Microsecond, []int{2, 1}, 200, guardEvery + trialPairs},
		{"what single steps cost is unknown", 0, []int{1}, 200, 0},
		{"a draft that costs nothing", 16 * time.Millisecond, []int{1}, 200, 0},
	} {
		g, r, at := guard{}, guarded{}, 0
		if c.single > 0 {
			for range learnedSteps {
				g.learn(0, c.single)
				g.learn(1, 16*time.Millisecond)
			}
		}
		for i := range c.steps {
			if c.single > 0 && r.rests(&g) {
				r.single(&g, c.single)
			}
			off := r.judge(&g, 1, c.tokens[i%len(c.tokens)], 16*time.Millisecond)
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
		g.learn(0, 10*time.Millisecond)
	}
	for i := range 20 * guardEvery { // a list of codes, then prose
		tokens := 2
		if i >= 10*guardEvery {
			tokens = 1
		}
		if r.rests(&g) {
			r.single(&g, 10*time.Millisecond)
		}
		if off := r.judge(&g, 1, tokens, 16*time.Millisecond); off != "" {
			if i >= 10*guardEvery && i < 11*guardEvery {
				return
			}
			t.Fatalf("at step %d: %s", i, off)
		}
	}
	t.Error("a draft that is always wrong from step 320 on is never switched off")
}

// On a busy machine longer steps are interrupted more often. That makes no draft lose that gains, nor the other way.
func TestGuardLooksPastInterruptions(t *testing.T) {
	const step, interruption = 16 * time.Millisecond, 30 * time.Millisecond
	for _, c := range []struct {
		tokens int
		off    bool
	}{{2, false}, {1, true}} {
		g, r, off := guard{}, guarded{}, ""
		for i := range learnedSteps {
			took := 10 * time.Millisecond
			if i%5 < 2 {
				took += interruption
			}
			g.learn(0, took)
		}
		for i := 0; i < 4*guardEvery && off == ""; i++ {
			took := step
			if i%5 < 3 {
				took += interruption
			}
			off = r.judge(&g, 1, c.tokens, took)
		}
		if (off != "") != c.off {
			t.Errorf("%d tokens a step of 1.6 single ones: %q", c.tokens, off)
		}
	}
}

// Before it is switched off a draft costs a reply of 160 tokens less than 3 % of its time, however much it loses; 5 %
// where a step costs three, as with blocks of 8.
func TestTryingADraftCostsLittle(t *testing.T) {
	const single = 10 * time.Millisecond
	for _, cost := range []float64{1.1, 1.3, 1.6, 2, 3} {
		for _, accepted := range []float64{0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.5, 2} {
			g, r, tokens, took, reply := guard{}, guarded{}, 0, time.Duration(0), 160
			for range learnedSteps {
				g.learn(0, single)
				g.learn(3, time.Duration(cost*float64(single)))
			}
			off := ""
			for i := 0; tokens < reply && off == ""; i++ {
				if r.rests(&g) {
					r.single(&g, single)
					tokens, took = tokens+1, took+single
				}
				got := 1 + int(float64(i+1)*accepted) - int(float64(i)*accepted)
				this := time.Duration(cost * float64(single))
				tokens, took = tokens+got, took+this
				off = r.judge(&g, 3, got, this)
			}
			took += time.Duration(reply-min(tokens, reply)) * single
			most := 0.03
			if cost > 2 {
				most = 0.051
			}
			if lost := float64(took)/float64(reply*int(single)) - 1; lost > most {
				t.Errorf("a step of %.1f single ones with %.1f tokens accepted: %.1f %% of the time is lost (%q)", cost,
					accepted, 100*lost, off)
			}
		}
	}
}

// A slow phase of the machine begins after single steps were seen, and makes drafted ones look slow.
func TestSlowPhaseOfTheMachineEndsNoDraft(t *testing.T) {
	g, r := guard{}, guarded{}
	for range learnedSteps {
		g.learn(0, 10*time.Millisecond)
	}
	trials := 0
	for i := range 10 * guardEvery { // every step takes three times as long
		if r.rests(&g) {
			r.single(&g, 30*time.Millisecond)
		}
		if off := r.judge(&g, 1, 2, 3*16*time.Millisecond); off != "" {
			t.Fatalf("at step %d: %s", i, off)
		}
		if r.trial != nil {
			trials++
		}
	}
	if trials == 0 {
		t.Error("nothing was doubted")
	}
}
