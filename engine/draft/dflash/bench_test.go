package dflash

import (
	"fmt"
	"testing"

	"slipway/engine/draft"
	"slipway/engine/pass"
)

// BenchmarkBlock is what a block of Pocket's draft costs, with the context rows of the step before, beside a pass of
// one
// row of Pocket: the number to compare with is the pass.
func BenchmarkBlock(b *testing.B) {
	g := openTarget(b, "q4", "bf16")
	from := g.prefill(answers(b, "q4")["vt"].IDs)
	b.Run("a pass of the target", func(b *testing.B) {
		p := g.proposer("q4", 7)
		s, c := g.begin(p, from)
		defer s.Close()
		defer c.End()
		for b.Loop() {
			g.forward(s, c, []int32{from.anchor}, pass.LogitsLast)
			s.Rewind(1)
		}
	})
	for _, most := range []int{1, 3, 7} {
		b.Run(fmt.Sprintf("a block of %d", most+1), func(b *testing.B) {
			p := g.proposer("q4", most)
			s, c := g.begin(p, from)
			defer s.Close()
			defer c.End()
			tokens := from.ids[len(from.ids)-most:]
			ask := greedy(c, from.anchor, most)
			for b.Loop() {
				*ask.Drafted = (*ask.Drafted)[:0]
				if err := p.Propose(b.Context(), []draft.Ask{ask}); err != nil {
					b.Fatal(err)
				}
				c.taps = from.taps[len(from.taps)-most*len(p.config.Taps)*p.config.Hidden:]
				g.kept(c, tokens) // as if they were accepted
			}
		})
	}
}
