package dflash

import (
	"math/rand/v2"
	"testing"

	"slipway/engine/draft"
	"slipway/engine/draft/accept"
	"slipway/engine/pass"
	"slipway/engine/weights"
)

// greedy asks for the likeliest tokens.
func greedy(c draft.Context, anchor int32, most int) draft.Ask {
	return draft.Ask{Context: c, Last: anchor, Most: most, Drafted: new([]accept.Drafted),
		Choose: func(row draft.Row) (*accept.Drafted, bool) {
			return &accept.Drafted{ID: row.IDs[largest(row.Logits)]}, true
		}}
}

// randomHead is a target's embedding and head in f32.
func randomHead(vocab, hidden int) weights.Matrix {
	r := rand.New(rand.NewPCG(7, 7))
	m := weights.Matrix{Name: "head", Out: vocab, In: hidden, DType: weights.BF16}
	for range vocab * hidden {
		b := weights.BF16Of(float32(0.2 * r.NormFloat64()))
		m.Data = append(m.Data, byte(b), byte(b>>8))
	}
	return m
}

// Windows that slide, rings that are used again, prompts that are read in part, steps of every length, blocks of every
// length and several sequences at once give the rows of the formulas.
func TestBlocksAreThoseOfTheFormulasInBatchesAndOverSlidingWindows(t *testing.T) {
	w := newWorld(t, odd, 3, randomHead(97, 96))
	a, b, c := w.begin(0), w.begin(700), w.begin(1000)
	w.check(2e-5, []int{7}, a) // knows nothing
	w.advance(a, 3, 3)
	w.advance(b, 40, 40)
	w.check(2e-5, []int{7, 2, 1}, a, b, c)
	w.advance(b, 500, 500) // more than the window: its last rows alone
	w.advance(a, 250, 250)
	w.check(2e-5, []int{3, 7}, b, a)
	for step := range 60 { // over a border of pages and a whole ring
		kept := 1 + w.r.IntN(8)
		w.advance(a, 8, kept)
		w.advance(b, 8, 8)
		if step%12 == 0 {
			w.check(2e-5, []int{1 + step%7, 4}, a, b)
		}
	}
	w.advance(c, 1, 1)
	w.check(2e-5, []int{7, 7, 7}, c, b, a)
}

// A proposal does not depend on what else is drafted in its pass.
func TestProposalsInABatchAreThoseAlone(t *testing.T) {
	w := newWorld(t, odd, 3, randomHead(97, 96))
	var alone [3][]accept.Drafted
	var asks []draft.Ask
	for i := range alone {
		f := w.begin(100 * i)
		w.advance(f, 120+i, 120+i)
		ask := greedy(f.draft, int32(i), 3+2*i)
		if err := w.p.Propose(t.Context(), []draft.Ask{ask}); err != nil {
			t.Fatal(err)
		}
		alone[i] = *ask.Drafted
		asks = append(asks, greedy(f.draft, int32(i), 3+2*i))
	}
	if err := w.p.Propose(t.Context(), asks); err != nil {
		t.Fatal(err)
	}
	for i := range alone {
		for k, token := range *asks[i].Drafted {
			if len(alone[i]) != 3+2*i || token.ID != alone[i][k].ID {
				t.Errorf("sequence %d: %v in a batch, %v alone", i, *asks[i].Drafted, alone[i])
			}
		}
	}
}

// What a state carries is enough to draft on from it: a window of context rows, in 16 bit.
func TestContextContinuesFromAStatesSection(t *testing.T) {
	w := newWorld(t, odd, 2, randomHead(97, 96))
	c := w.n.config
	f := w.begin(0)
	w.advance(f, 130, 130)
	w.advance(f, 290, 290)
	w.advance(f, 8, 5)
	section := f.seq.onSave()
	if len(section.Rows) != c.Window*c.RowBytes() || section.First != 425-c.Window {
		t.Fatalf("a section of %d bytes from %d on", len(section.Rows), section.First)
	}
	restored := func(length int, section pass.Section) *follower {
		g := &follower{seq: &lonely{length: length, section: section}, first: section.First}
		g.rows = f.rows[section.First-f.first:]
		if g.draft = w.p.Begin(g.seq, nil).(*sequence); g.draft.known != section.First {
			t.Fatalf("it knows positions from %d on, of a section from %d on", g.draft.known, section.First)
		}
		return g
	}
	g := restored(425, section)
	w.check(0.05, []int{7}, g) // BF16 keeps 8 bits
	w.advance(g, 8, 8)
	w.check(0.05, []int{7, 7}, g, f)
	if again := g.seq.onSave(); again.First != 433-c.Window || len(again.Rows) != c.Window*c.RowBytes() {
		t.Errorf("the section of the restored one has %d bytes from %d on", len(again.Rows), again.First)
	}
	g.draft.End()
	if g.seq.onSave != nil {
		t.Error("an ended context still gives sections")
	}
	// A section that does not reach the sequence's end is not used.
	h := &lonely{length: 426, section: section}
	if s := w.p.Begin(h, nil).(*sequence); s.known != 426 {
		t.Errorf("a section of 425 tokens serves one of 426: it knows from %d on", s.known)
	}
}
