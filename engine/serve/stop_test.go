package serve

import (
	"strings"
	"testing"
)

// However a text is split into pushes, the output is the text before the earliest stop text.
func TestStopFinderDoesNotDependOnHowTextIsSplit(t *testing.T) {
	tests := []struct {
		name  string
		stops []string
		text  string
		want  string
		hit   bool
	}{
		{"none", nil, "abc", "abc", false},
		{"not there", []string{"x"}, "abc", "abc", false},
		{"the later one is listed last", []string{"b", "d"}, "abcde", "a", true},
		{"the later one is listed first", []string{"d", "b"}, "abcde", "a", true},
		{"one is the other's start", []string{"bcd", "b"}, "abcde", "a", true},
		{"begins twice", []string{"aab"}, "aaab", "a", true},
		{"begins and does not come", []string{"abcd"}, "xabcx", "xabcx", false},
		{"half at the end", []string{"abcd"}, "xabc", "xabc", false},
		{"at the very start", []string{"ab"}, "abc", "", true},
		{"outside ASCII", []string{"ß–"}, "Fuß–weg", "Fu", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for cuts := range 1 << max(0, len(test.text)-1) { // bit i: a cut after byte i
				f := StopFinder{Stops: test.stops}
				var out strings.Builder
				hit, from := false, 0
				for i := 1; i <= len(test.text) && !hit; i++ {
					if i < len(test.text) && cuts>>(i-1)&1 == 0 {
						continue
					}
					var piece string
					piece, hit = f.Push(test.text[from:i])
					out.WriteString(piece)
					from = i
				}
				if !hit {
					out.WriteString(f.Flush())
				}
				if out.String() != test.want || hit != test.hit {
					t.Fatalf("cuts %b: %q, hit %v; want %q, %v", cuts, out.String(), hit, test.want, test.hit)
				}
			}
		})
	}
}
