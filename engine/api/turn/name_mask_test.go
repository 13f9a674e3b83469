package turn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// vocabularyOf makes different pieces of random letters, every single byte among them.
func vocabularyOf(r *rand.Rand, tokens int) [][]byte {
	vocabulary, known := [][]byte{nil}, map[string]bool{}
	for b := range 256 {
		vocabulary = append(vocabulary, []byte{byte(b)})
	}
	letters := "abcdefget_time=>\n"
	for len(vocabulary) < tokens {
		piece := make([]byte, 2+r.IntN(6))
		for i := range piece {
			piece[i] = letters[r.IntN(len(letters))]
		}
		if !known[string(piece)] {
			vocabulary, known[string(piece)] = append(vocabulary, piece), true
		}
	}
	return vocabulary
}

func namesOf(r *rand.Rand, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("=%s_%d>\n", []string{"get", "get_time", "a", "tie"}[r.IntN(4)], i))
	}
	return append(names, "=get>\n", "=get_time>\n", "=get_tim>\n")
}

// Every beginning of a name allows what a look at each token of the vocabulary allows.
func TestNameTokensEqualTheWholeVocabulary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 20))
	beginnings := 0
	for range 8 {
		vocabulary := vocabularyOf(r, 257+r.IntN(3000))
		special := func(id int32) bool { return id%97 == 96 }
		p := newPieces(len(vocabulary), func(id int32) []byte { return vocabulary[id] }, special)
		names := namesOf(r, r.IntN(30))
		after := p.nameTokens(names)
		for written, got := range after {
			var want []int32
			for id, piece := range vocabulary {
				if len(piece) > 0 && !special(int32(id)) && slices.ContainsFunc(names, func(name string) bool {
					return strings.HasPrefix(name, written+string(piece))
				}) {
					want = append(want, int32(id))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("after %q: %v, want %v", written, got, want)
			}
		}
		beginnings += len(after)
	}
	if beginnings < 100 {
		t.Errorf("%d beginnings: the test saw too little", beginnings)
	}
}

// A step looks the tokens up; what is computed for a request is this.
func BenchmarkNamesOfAHundredTools(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 20))
	vocabulary := vocabularyOf(r, 248_320)
	p := newPieces(len(vocabulary), func(id int32) []byte { return vocabulary[id] }, func(int32) bool { return false })
	names := namesOf(r, 97)
	for b.Loop() {
		p.nameTokens(names)
	}
}
