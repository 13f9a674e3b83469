package selftest

import (
	"regexp"
	"strings"
	"testing"
)

// A person who sets up a machine reads the table.
func TestOperationNamesAreForPeople(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range All() {
		if bad := regexp.MustCompile(`format [01]|\d\+\d|[\[{]\d+[+{]`).FindString(o.Name); bad != "" {
			t.Errorf("%s: %q", o.Name, bad)
		}
		for _, format := range []string{"in f16", "in q8"} {
			seen[format] = seen[format] || strings.Contains(o.Name, "attention "+format+", ")
		}
	}
	if !seen["in f16"] || !seen["in q8"] {
		t.Error("the format of keys and values is not named")
	}
}
