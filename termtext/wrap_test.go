package termtext

import (
	"slices"
	"strings"
	"testing"
)

func TestWidthCountsColumnsAndNotCharacters(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "plain": 5, "Käse": 4, "Ka\u0308se": 4, "да": 2, "中文": 4, "ｗｉｄｅ": 8, "e\u0301\u0323": 1, "👍": 2,
		"한글": 4, "\u1112\u1161\u11ab": 2, "a\u200db": 2,
	} {
		if got := Width(text); got != want {
			t.Errorf("%q has %d columns, want %d", text, got, want)
		}
	}
}

func TestLinesBreakAtBlanksAndHang(t *testing.T) {
	for _, row := range []struct {
		line          string
		columns, hang int
		want          []string
	}{
		{"fits", 4, 2, []string{"fits"}},
		{"no terminal, so the line stays whole", 0, 2, []string{"no terminal, so the line stays whole"}},
		{"one two three", 7, 0, []string{"one two", "three"}},
		{"Model: one two three", 14, 7, []string{"Model: one two", "       three"}},
		{"  1. a bc def", 10, 5, []string{"  1. a bc", "     def"}},
		{"see /a/path/that/is/long now", 10, 0, []string{"see", "/a/path/that/is/long", "now"}},
		{"/a/path/that/is/long", 10, 4, []string{"/a/path/that/is/long"}},
		{"a  b   c", 5, 0, []string{"a  b", "c"}},
		{"中文中文", 6, 0, []string{"中文中", "文"}},
		{"ab中文 cd", 5, 0, []string{"ab中", "文 cd"}},
		{"cafe\u0301 cafe\u0301 cafe\u0301", 9, 0, []string{"cafe\u0301 cafe\u0301", "cafe\u0301"}},
		{"wide hang", 6, 40, []string{"wide", "   hang"}},
	} {
		if got := Wrap(row.line, row.columns, row.hang); !slices.Equal(got, row.want) {
			t.Errorf("%q in %d columns: %q, want %q", row.line, row.columns, got, row.want)
		}
	}
}

func TestNoPartIsWiderThanTheTerminalAndNoWordIsLost(t *testing.T) {
	const line = "Das Modell 中文模型 antwortet: да, e\u0301tude naïve 👍 und mehr, aber nur so weit es passt."
	for columns := 14; columns < 100; columns++ {
		parts := Wrap(line, columns, 3)
		for _, part := range parts {
			if Width(part) > columns {
				t.Errorf("%d columns: %q has %d", columns, part, Width(part))
			}
		}
		if got := strings.ReplaceAll(strings.Join(parts, ""), " ", ""); got != strings.ReplaceAll(line, " ", "") {
			t.Errorf("%d columns: %q", columns, parts)
		}
	}
}

func TestCutLineFitsItsColumns(t *testing.T) {
	for _, row := range []struct {
		line    string
		columns int
		want    string
	}{
		{"fits", 4, "fits"}, {"too long", 4, "too…"}, {"中文中文", 6, "中文…"}, {"中文中文", 8, "中文中文"},
		{"e\u0301e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301…"}, {"no limit", 0, "no limit"},
	} {
		if got := Cut(row.line, row.columns); got != row.want || row.columns > 0 && Width(got) > row.columns {
			t.Errorf("%q in %d columns: %q, want %q", row.line, row.columns, got, row.want)
		}
	}
}
