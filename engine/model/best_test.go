package model

import (
	"context"
	"sort"
	"testing"

	"slipway/engine/pass"
)

// The device chooses the largest of each row, however many each segment asked for.
func TestBestIsOfTheRowThatItIsAskedFor(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 512, MaxSequences: 3})
	prompt := longPrompt(t, 60)
	var segments []pass.Segment
	for i, top := range []int{5, 0, 20} {
		segments = append(segments, pass.Segment{Seq: newSequence(t, n), Tokens: prompt[i : 10*(i+1)],
			Logits: []pass.Logits{pass.LogitsLast, pass.LogitsNone, pass.LogitsAll}[i], Top: top})
	}
	for round := range 3 {
		rows, err := n.Forward(context.Background(), segments)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range segments {
			logits, ids := n.Best(i, g.Rows()-1)
			if g.Logits == pass.LogitsNone || round == 1 {
				if len(logits) != 0 {
					t.Errorf("round %d, segment %d: %d chosen that were not asked for", round, i, len(logits))
				}
				continue
			}
			row := rows[i][len(rows[i])-1]
			order := make([]int, len(row))
			for id := range order {
				order[id] = id
			}
			sort.SliceStable(order, func(a, b int) bool { return row[order[a]] > row[order[b]] })
			if len(ids) < g.Top {
				t.Fatalf("%d chosen, wanted %d", len(ids), g.Top)
			}
			for place, id := range ids {
				if int(id) != order[place] || logits[place] != row[order[place]] {
					t.Fatalf("round %d, segment %d, place %d: %v at %v, the row has %v at %d", round, i, place,
						logits[place], id, row[order[place]], order[place])
				}
			}
		}
		for i := range segments {
			segments[i].Tokens = prompt[30+round : 31+round]
			segments[i].Top = []int{0, 7, 30}[round] * i
			if round == 0 {
				segments[i].Top = 0
			}
		}
	}
}
