package profiles

import (
	"strings"

	"slipway/units"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// capital begins a sentence with a capital letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// grouped writes 262144 as 262,144.
func grouped[T int | int64](n T) string { return units.Count(int(n)) }
