package profiles

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	gib = 1 << 30
	mib = 1 << 20
)

// gibi is bytes in GiB with one decimal, in MiB below 1 GiB.
func gibi(bytes int64) string {
	if bytes < gib {
		return fmt.Sprintf("%.0f MiB", float64(bytes)/mib)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gib)
}

// both is bytes in GiB and GB, in MiB and MB below 1 GiB.
func both(bytes int64) string {
	if bytes < gib {
		return fmt.Sprintf("%s (%.0f MB)", gibi(bytes), float64(bytes)/1e6)
	}
	return fmt.Sprintf("%s (%.1f GB)", gibi(bytes), float64(bytes)/1e9)
}

// capital begins a sentence with a capital letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// grouped writes 262144 as 262,144.
func grouped[T int | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
