package model

import (
	"testing"

	"slipway/engine/pass"
)

// Restoring from memory must cost less than computing 64 tokens, and saving a point less than 2 % of the 512 tokens of
// prefill between two of them: compare the three.
func BenchmarkPoint(b *testing.B) {
	n := load(b, pocketQ4, Options{WindowTokens: 4096, MaxSequences: 2, ExtraPages: 32, TapeTokens: 64})
	prompt := randomTokens(3000, 4000, 1)
	s, err := n.NewSequence()
	if err != nil {
		b.Fatal(err)
	}
	forwardAll := func(s *Sequence, tokens []int32) {
		for len(tokens) > 0 {
			c := min(512, len(tokens))
			if _, err := n.Forward(b.Context(), []pass.Segment{{Seq: s, Tokens: tokens[:c]}}); err != nil {
				b.Fatal(err)
			}
			tokens = tokens[c:]
		}
	}
	forwardAll(s, prompt)
	point, err := s.Save(false)
	if err != nil {
		b.Fatal(err)
	}
	defer point.Release()
	b.Run("restore from memory", func(b *testing.B) {
		for b.Loop() {
			s.Restore(point, point.Len())
		}
	})
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			p, err := s.Save(false)
			if err != nil {
				b.Fatal(err)
			}
			p.Release()
		}
	})
	for _, c := range []struct {
		name   string
		tokens int
	}{{"compute 64 tokens", 64}, {"compute 512 tokens", 512}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				s.Restore(point, point.Len())
				forwardAll(s, prompt[:c.tokens])
			}
		})
	}
	for _, tape := range []int{0, 64} {
		n := load(b, pocketQ4, Options{WindowTokens: 4096, MaxSequences: 1, TapeTokens: tape})
		s, err := n.NewSequence()
		if err != nil {
			b.Fatal(err)
		}
		name := "decode a token without a tape"
		if tape > 0 {
			name = "decode a token with a tape"
		}
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if s.Len() == 4096 {
					b.Skip("the window is full; run fewer")
				}
				if _, err := n.Forward(b.Context(), []pass.Segment{
					{Seq: s, Tokens: prompt[i%3000 : i%3000+1]}}); err != nil {
					b.Fatal(err)
				}
			}
		})
		s.Close()
	}
}
