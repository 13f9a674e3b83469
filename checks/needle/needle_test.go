package needle

import (
	"bytes"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"slipway/checks/filler"
	"slipway/checks/record"
)

// words is a ruler whose tokens are words.
func words() *Ruler {
	r := &Ruler{fact: 9}
	for _, line := range filler.Lines() {
		r.lines = append(r.lines, len(strings.Fields(line)))
	}
	return r
}

// A code must lie at the depth that is reported, in tokens of the document.
func TestCodeLiesWhereTheReportSays(t *testing.T) {
	for _, tokens := range []int{300, 3000, 30000} {
		depths := []float64{0, 0.25, 0.5, 0.75, 1}
		var lines []string
		for range depths {
			lines = append(lines, Fact(Name(rand.New(rand.NewPCG(1, uint64(len(lines)))), nil), "123456"))
		}
		document, placed := words().Build(rand.New(rand.NewPCG(7, 7)), tokens, lines, depths)
		total := len(strings.Fields(document))
		if total > tokens || total < tokens-30 {
			t.Errorf("a document of %d tokens has %d", tokens, total)
		}
		for i, line := range lines {
			before, _, found := strings.Cut(document, line)
			at := float64(len(strings.Fields(before))) / float64(total)
			if !found || math.Abs(at-placed[i]) > 0.001 || math.Abs(at-depths[i]) > 60/float64(total) {
				t.Errorf("%d tokens, depth %v: said to be at %v, is at %v", tokens, depths[i], placed[i], at)
			}
		}
	}
}

// An answer must not count for a code that it does not give, or gives to another name.
func TestScoringRule(t *testing.T) {
	for _, row := range []struct {
		answer string
		found  bool
	}{
		{"The access code for the old lark is 123456.", true},
		{"old lark: 123456\ncold crane: 999999", true},
		{"123456", true},
		{"Old Lark — 123456", true},
		{"old lark: 999999\ncold crane: 123456", false},
		{"old lark: none, cold crane: 999999, 123456", false},
		{"1234567", false},
		{"12345", false},
		{"123 456", false},
		{"The document has no access code for the old lark.", false},
		{"", false},
	} {
		if Found(row.answer, "old lark", "123456") != row.found {
			t.Errorf("%q: found should be %v", row.answer, row.found)
		}
	}
}

// The heat map must show what was found and what was not, and leave empty what was not asked.
func TestHeatMapShowsFoundAndMissed(t *testing.T) {
	m := MapOf([]record.Answer{
		{Parts: []record.Part{{Length: 100, Depth: 0.05, Hit: true}, {Length: 100, Depth: 1, Hit: false},
			{Length: 200, Depth: 0.05, Hit: false}}}}, 10)
	if text := m.Text(); !strings.Contains(text, "0-10 %      1/1      0/1") ||
		!strings.Contains(text, "90-100 %      0/1        -") {
		t.Fatal(text)
	}
	picture, err := png.Decode(bytes.NewReader(m.PNG()))
	if err != nil {
		t.Fatal(err)
	}
	light := func(row, column int) uint32 {
		r, g, b, _ := picture.At(leftWidth+column*cellWidth+2, topHeight+row*cellHeight+2).RGBA()
		return r + g + b
	}
	if light(0, 0) <= light(9, 0) || light(9, 0) != light(0, 1) || light(9, 1) == light(9, 0) {
		t.Fatalf("found %d, not found %d, not asked %d", light(0, 0), light(9, 0), light(9, 1))
	}
}
