package qwen35

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dlclark/regexp2"
)

// The pattern itself, run by a backtracking engine, is the reference of the hand scanner. The long s after an
// apostrophe is left out: that engine folds it otherwise than the tokenizers library does.
func TestScannerEqualsThePattern(t *testing.T) {
	pattern := regexp2.MustCompile(splitPattern, regexp2.None)
	alphabet := []rune("aZé'sSrRvVlLeEtmdD 09٣½\t\r\n\u00a0\u2028\u3000.,!?(_-\u0301\u0903中文кир😀𝟘\u200d\"<|>")
	random := rand.New(rand.NewPCG(1, 2))
	for round := 0; round < 60000; round++ {
		text := make([]rune, 1+random.IntN(12))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		s := string(text)
		var want, got []string
		for m, _ := pattern.FindStringMatch(s); m != nil; m, _ = pattern.FindNextMatch(m) {
			want = append(want, m.String())
		}
		for i := 0; i < len(s); {
			end := wordEnd(s, i)
			got = append(got, s[i:end])
			i = end
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q is cut into %q, want %q", s, got, want)
		}
	}
}

func TestLongSFoldsIntoTheContraction(t *testing.T) {
	if end := wordEnd("'\u017Fx", 0); end != 3 {
		t.Fatalf("the contraction ends at %d, want 3", end)
	}
}
