package lint

import (
	"regexp"
	"strings"
)

// headParts are what the comment on top of a kernel file must contain, and how each part is recognised.
var headParts = []struct {
	what  string
	found *regexp.Regexp
}{
	{"what it computes: a first sentence", regexp.MustCompile(`\A// [A-Z].*\n`)},
	{"its buffers' shapes, or the file that says them", regexp.MustCompile(`\[[^\]]+\]|\bas (?:in |of )?\w+\.metal`)},
	{"what a thread or a threadgroup owns", regexp.MustCompile(`(?i)\b(?:thread|threadgroup|simdgroup)\b`)},
	{"its reference, or the file that says it", regexp.MustCompile(`Reference: device/cpu [A-Z]|\bas \w+\.metal`)},
	{"its tolerance", regexp.MustCompile(`(?i)\btolerance (?:\d|as there)|\bexact\.`)},
	{"its plain variant, or that it is plain",
		regexp.MustCompile(`Plain variant: \w+\.metal|Its own plain variant|, plain[:.]`)},
}

// Head reports what the comment on top of a kernel file lacks. text is the file alone.
func Head(name, text string) (found []Finding) {
	head := ""
	for _, line := range strings.SplitAfter(text, "\n") {
		if !strings.HasPrefix(line, "//") {
			break
		}
		head += line
	}
	for _, p := range headParts {
		if !p.found.MatchString(head) {
			found = append(found, Finding{name, 1, "the comment on top does not say " + p.what})
		}
	}
	return found
}
