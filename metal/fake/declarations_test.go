//go:build unix

package fake

import (
	"regexp"
	"testing"
)

func TestFakeAnswersExactlyTheDeclaredSelectors(t *testing.T) {
	answered := map[string]bool{}
	for _, m := range regexp.MustCompile(`X\(\w+, "([\w:]+)"\)`).FindAllStringSubmatch(code, -1) {
		answered[m[1]] = true
		if Declarations[m[1]] == "" {
			t.Errorf("fake.cpp answers %s, which is not declared", m[1])
		}
	}
	for name := range Declarations {
		if !answered[name] {
			t.Errorf("%s is declared, and fake.cpp does not answer it", name)
		}
	}
}
