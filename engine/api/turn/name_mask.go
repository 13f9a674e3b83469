package turn

import (
	"bytes"
	"slices"
	"sort"
	"strings"

	"slipway/engine/sample"
	"slipway/engine/text"
)

// Where a call is required, the reply may only go on towards the name of one of the tools. Which tokens do is computed
// for the request before it is queued; a step of the engine looks it up.

// pieces is a vocabulary as a prefix tree: the ids in the order of their bytes, so that those with a common beginning
// are a range. Special and empty tokens are not in it.
type pieces struct {
	ids   []int32
	bytes func(int32) []byte
}

func newPieces(vocabTokens int, bytesOf func(int32) []byte, special func(int32) bool) *pieces {
	p := &pieces{bytes: bytesOf}
	for id := range int32(vocabTokens) {
		if len(bytesOf(id)) > 0 && !special(id) {
			p.ids = append(p.ids, id)
		}
	}
	slices.SortFunc(p.ids, func(a, b int32) int { return bytes.Compare(bytesOf(a), bytesOf(b)) })
	return p
}

func piecesOf(t *text.Tokenizer) *pieces { return newPieces(t.VocabSize(), t.TokenBytes, t.IsSpecial) }

// towards appends to found the ids whose bytes go on from names[:][at:]. names are sorted and alike up to at+depth;
// ids are those of the tree whose first depth bytes are the names' next.
func (p *pieces) towards(names []string, at, depth int, ids, found []int32) []int32 {
	for depth > 0 && len(ids) > 0 && len(p.bytes(ids[0])) == depth { // a shorter piece comes before its continuations
		found, ids = append(found, ids[0]), ids[1:]
	}
	for len(names) > 0 && len(ids) > 0 {
		if len(names[0]) == at+depth {
			names = names[1:]
			continue
		}
		next := names[0][at+depth]
		alike := sort.Search(len(names), func(i int) bool { return names[i][at+depth] > next })
		from := sort.Search(len(ids), func(i int) bool { return p.bytes(ids[i])[depth] >= next })
		to := sort.Search(len(ids), func(i int) bool { return p.bytes(ids[i])[depth] > next })
		found = p.towards(names[:alike], at, depth+1, ids[from:to], found)
		names, ids = names[alike:], ids[to:]
	}
	return found
}

// nameTokens gives the ids that may follow each beginning of a name that tokens can have written. Each name ends with
// the only newline in it.
func (p *pieces) nameTokens(names []string) map[string][]int32 {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	after := map[string][]int32{}
	for open := []string{""}; len(open) > 0; {
		written := open[len(open)-1]
		open = open[:len(open)-1]
		if _, done := after[written]; done || strings.HasSuffix(written, "\n") {
			continue
		}
		from := sort.SearchStrings(names, written)
		to := from + sort.Search(len(names)-from, func(i int) bool {
			return !strings.HasPrefix(names[from+i], written)
		})
		after[written] = p.towards(names[from:to], len(written), 0, p.ids, nil)
		for _, id := range after[written] {
			open = append(open, written+string(p.bytes(id)))
		}
	}
	return after
}

// nameMask allows, after the opening, only tokens that go on towards the name of one of the tools, to the end of its
// line.
func (s *Service) nameMask(tools []Tool, openingTokens int) func([]int32) sample.Mask {
	var names []string
	for _, t := range tools {
		names = append(names, s.opt.Text.Family.CallName(t.Name))
	}
	after := s.pieces().nameTokens(names)
	tokenizer := s.opt.Text.Tokenizer
	return func(reply []int32) sample.Mask {
		var written []byte
		for _, id := range reply[openingTokens:] {
			if written = append(written, tokenizer.TokenBytes(id)...); bytes.IndexByte(written, '\n') >= 0 {
				return nil
			}
		}
		mask := sample.NewMask(s.VocabTokens())
		for _, id := range after[string(written)] {
			mask.Allow(id)
		}
		return mask
	}
}
