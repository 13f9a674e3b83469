package needle

import (
	"context"
	"math/rand/v2"
	"strings"

	"slipway/checks/count"
	"slipway/checks/filler"
)

// Ruler knows the tokens of every line that documents are made of.
type Ruler struct {
	Route string
	head  int   // of the template
	lines []int // of the filler, line break included
	fact  int
}

// blockLines are counted together where every count is a request to the model; their tokens are shared out by bytes,
// which moves a place in the text by a few tokens at most.
const blockLines = 8

// Measure counts the filler's lines and a code's line.
func Measure(ctx context.Context, c *count.Counter) (*Ruler, error) {
	r := &Ruler{Route: c.Route, head: c.Head()}
	all := filler.Lines()
	for at := 0; at < len(all); at += blockLines {
		block := all[at:min(at+blockLines, len(all))]
		tokens, err := c.Count(ctx, strings.Join(block, "\n"))
		if err != nil {
			return nil, err
		}
		bytes := 0
		for _, line := range block {
			bytes += len(line) + 1
		}
		left := tokens
		for i, line := range block {
			share := (tokens*(len(line)+1) + bytes/2) / bytes
			if i == len(block)-1 {
				share = left
			}
			r.lines = append(r.lines, max(1, share))
			left -= share
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	var facts []string
	for range blockLines {
		facts = append(facts, fact(name(random), code(random)))
	}
	tokens, err := c.Count(ctx, strings.Join(facts, "\n"))
	r.fact = max(1, tokens/blockLines)
	return r, err
}

// Build makes a document of at most about so many tokens with a line at each depth, which are in ascending order. It
// returns the depths that resulted: lines are not split.
func (r *Ruler) Build(random *rand.Rand, tokens int, lines []string, depths []float64) (document string,
	placed []float64) {
	next := filler.Shuffled(random)
	room := tokens - len(lines)*r.fact
	var text []string
	var before []int // tokens in front of each line of filler
	total := 0
	for {
		i := next()
		if total+r.lines[i] > room && len(text) > 0 {
			break // never longer than asked for: the window may end there
		}
		text, before = append(text, filler.Lines()[i]), append(before, total)
		total += r.lines[i]
	}
	var out []string
	at := 0
	for i := 0; i <= len(text); i++ {
		position := total
		if i < len(text) {
			position = before[i]
		}
		for at < len(lines) && float64(position) >= depths[at]*float64(total) {
			placed = append(placed, float64(position+at*r.fact)/float64(total+len(lines)*r.fact))
			out = append(out, lines[at])
			at++
		}
		if i < len(text) {
			out = append(out, text[i])
		}
	}
	for ; at < len(lines); at++ { // a depth of 1 that rounding left over
		placed = append(placed, 1)
		out = append(out, lines[at])
	}
	return strings.Join(out, "\n"), placed
}
