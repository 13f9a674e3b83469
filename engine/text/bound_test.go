package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// snippets are what random texts are made of: words, cuts where a block may end, and what may join across a cut.
var snippets = []string{"the ", "quick", "brown\n", "fox's", "'S ", "it'ſ ", " ", "  \n", "\n\n", "a", "é", "e\u0301",
	"\u0301 ", "K\u212A ", "中文 ", "word word ", "x= y", "<", "...", "\t", "12 ", "ga\u0304\u0301 ", "한 ",
	"\u1112\u1161\u11AB "}

func randomText(random *rand.Rand, atLeastBytes int) string {
	var b strings.Builder
	for b.Len() < atLeastBytes {
		b.WriteString(snippets[random.IntN(len(snippets))])
	}
	return b.String()
}

func TestBlocksEndBetweenWords(t *testing.T) {
	tokenizer := pocketTokenizer(t)
	random := rand.New(rand.NewPCG(5, 6))
	for range 10 {
		s := randomText(random, 3*blockBytes)
		if end := blockEnd(s); end < blockBytes || end > blockBytes+2000 {
			t.Fatalf("a block ends at %d", end)
		}
		if whole, blocks := newEncoder(tokenizer).block(nil, s), newEncoder(tokenizer).segment(nil, s); !slices.Equal(
			whole, blocks) {
			t.Fatalf("%d ids in blocks, %d in one", len(blocks), len(whole))
		}
	}
}

func TestBoundNeverExceedsTheCount(t *testing.T) {
	tokenizer := pocketTokenizer(t)
	random := rand.New(rand.NewPCG(7, 8))
	texts := []string{"", "a", strings.Repeat(" ", 1000), strings.Repeat("a", 1000), strings.Repeat("é中", 500),
		strings.Repeat("\u212A", 500), strings.Repeat("<|im_end|>", 100)}
	for _, piece := range tokenizer.pieces { // each token alone is one
		texts = append(texts, string(piece))
	}
	for range 200 {
		texts = append(texts, randomText(random, 1+random.IntN(400)))
	}
	for _, s := range texts {
		count := len(tokenizer.Encode(normalize(s), EncodeOptions{SpecialTokens: true}))
		if bound := tokenizer.fewest(normalize(s)); bound > count {
			t.Errorf("%.60q has %d ids, the bound says %d", s, count, bound)
		}
		if bound := tokenizer.fewest(s) / shrinkByNFC; bound > count {
			t.Errorf("%.60q, not normalised, has %d ids, the bound says %d", s, count, bound)
		}
	}
}

func TestHugePromptIsNotMerged(t *testing.T) {
	tokenizer := pocketTokenizer(t)
	const most = 5000
	for name, s := range map[string]string{
		"one word":          strings.Repeat("a", 4<<20),
		"words":             strings.Repeat("the quick brown fox ", 200_000),
		"two-byte letters":  strings.Repeat("é中", 1<<20),
		"marks":             strings.Repeat("e\u0301", 1<<20),
		"blanks":            strings.Repeat(" ", 4<<20),
		"added tokens":      strings.Repeat("<|im_end|> ", 400_000),
		"words, no letters": strings.Repeat("= ", 2<<20),
	} {
		ids, atLeast := tokenizer.EncodeAtMost(Prompt{Text: s}, most)
		if ids != nil || atLeast <= most {
			t.Errorf("%s: %d ids, at least %d", name, len(ids), atLeast)
		}
	}
	// Near the bound the count is exact, on both sides.
	s := strings.Repeat("the quick brown fox ", 400)
	count := len(tokenizer.Encode(s, EncodeOptions{SpecialTokens: true}))
	if ids, atLeast := tokenizer.EncodeAtMost(Prompt{Text: s}, count); len(ids) != count || atLeast != 0 {
		t.Errorf("a prompt of %d ids: %d, at least %d", count, len(ids), atLeast)
	}
	if ids, atLeast := tokenizer.EncodeAtMost(Prompt{Text: s}, count-1); ids != nil || atLeast < count-1 ||
		atLeast > count {
		t.Errorf("a prompt of %d ids: %d, at least %d", count, len(ids), atLeast)
	}
}

// A word of a megabyte takes 60 MB to merge; they must not stay for the next request.
func TestScratchOfALongWordIsReleased(t *testing.T) {
	e := newEncoder(pocketTokenizer(t))
	e.segment(nil, strings.Repeat("a", 1<<20))
	if e.trim(); cap(e.ids) > keptSymbols || cap(e.chain.links) > keptSymbols || cap(e.chain.pairs) > keptSymbols {
		t.Errorf("%d symbols, %d links and %d pairs are kept", cap(e.ids), cap(e.chain.links), cap(e.chain.pairs))
	}
	e.segment(nil, "short words")
	if e.trim(); e.ids == nil {
		t.Error("the room for short words is thrown away")
	}
}
