package text

import (
	"math"
	"strings"
)

// A prompt may arrive that is hundreds of times too long. It is refused by its size, without the memory that merging it
// would take: encoding goes block by block and stops once too many ids are certain, and a word that is too long for its
// ids to be few is not merged at all.

const (
	blockBytes  = 64 << 10 // encoded at a time
	boundedWord = 64 << 10 // bytes; longer words are measured before they are merged
	keptSymbols = 64 << 10 // symbols of a word that an encoder keeps room for between two uses
	// form C makes text at most 3 times shorter (U+212A, 3 bytes, becomes K); one more for safety
	shrinkByNFC    = 4
	boundedSegment = 1 << 20 // bytes; longer blocks (without a word's end) are measured before they are normalised
)

// EncodeAtMost is [Tokenizer.EncodePrompt] for a prompt of any size. It stops once more than most ids are certain; then
// it gives no ids, but a number that the prompt has at least. Otherwise atLeast is 0.
func (t *Tokenizer) EncodeAtMost(p Prompt, most int) (ids []int32, atLeast int) {
	ids, atLeast = t.encode(p.Text, p.guards, true, most)
	if atLeast > 0 {
		return nil, atLeast
	}
	return ids, 0
}

// longestPieces gives, for each byte, the length of the longest token that holds it.
func longestPieces(pieces [][]byte) (longest [256]int32) {
	for _, piece := range pieces {
		for _, b := range piece {
			longest[b] = max(longest[b], int32(len(piece)))
		}
	}
	return longest
}

// fewest is a number of ids that normalised text has at least. A token of n bytes counts each of its bytes as 1/longest
// of that byte, which is at most 1/n: so the sum over all bytes is at most the number of tokens.
func (t *Tokenizer) fewest(s string) int {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	sum := 0.0
	for b, n := range count {
		if n > 0 {
			sum += float64(n) / float64(t.longest[b])
		}
	}
	return int(math.Floor(sum * (1 - 1e-9)))
}

// blockEnd gives where s can be split after at least blockBytes so that both sides are encoded as in one: between an
// ASCII letter and a blank or newline a word always ends, and form C joins nothing. It is len(s) where there is no such
// place.
func blockEnd(s string) int {
	for at := blockBytes; at < len(s); {
		i := strings.IndexAny(s[at:], " \n")
		if i < 0 {
			break
		}
		at += i
		if c := s[at-1] | 0x20; c >= 'a' && c <= 'z' {
			return at
		}
		at++
	}
	return len(s)
}
