package text

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// The library puts U+034F into runs of more than 30 marks; the tokenizers that made the models do not.
func TestLongRunsOfMarksStayAsTheyAre(t *testing.T) {
	for name, c := range map[string][2]string{
		"one mark joins, 39 stay": {"a" + strings.Repeat("\u0301", 40), "á" + strings.Repeat("\u0301", 39)},
		"marks are ordered by class": {"x" + strings.Repeat("\u0301\u0323", 20), "x" + strings.Repeat("\u0323", 20) +
			strings.Repeat("\u0301", 20)},
		"text around the run": {"e\u0301 a" + strings.Repeat("\u0302", 33) + " e\u0301",
			"é â" + strings.Repeat("\u0302", 32) + " é"},
		"Hangul before the run": {"\u1112\u1161\u11ab" + strings.Repeat("\u0301", 35),
			"한" + strings.Repeat("\u0301", 35)},
		"precomposed start of the run": {"\u01de" + strings.Repeat("\u0304", 32), "\u01de" +
			strings.Repeat("\u0304", 32)},
		"a run at the end of the text": {strings.Repeat("\u0301", 31), strings.Repeat("\u0301", 31)},
		"marks of another class joined": {"s" + strings.Repeat("\u0307\u0323", 16), "\u1e69" +
			strings.Repeat("\u0323", 15) + strings.Repeat("\u0307", 15)},
	} {
		if got := normalize(c[0]); got != c[1] {
			t.Errorf("%s: %+q, want %+q", name, got, c[1])
		}
	}
}

// Up to 30 marks the library is right: both ways must agree.
func TestDirectCompositionAgainstTheLibrary(t *testing.T) {
	alphabet := []rune("ae\u00e9\u01de\u0301\u0323\u0307\u0304\u0344\u093c\u0915\u1112\u1161\u11ab가각\ufb01\u212b")
	random := rand.New(rand.NewPCG(7, 8))
	for range 50000 {
		s := make([]rune, 1+random.IntN(10))
		for i := range s {
			s[i] = alphabet[random.IntN(len(alphabet))]
		}
		if got, want := composeMarks(string(s)), norm.NFC.String(string(s)); got != want {
			t.Fatalf("%+q becomes %+q, want %+q", string(s), got, want)
		}
	}
}
