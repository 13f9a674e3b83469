package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes writes a size with both units where they differ enough to matter: "6.95 MB", "16.00 GB (14.90 GiB)".
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.2f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB (%.2f GiB)", float64(n)/1e9, float64(n)/(1<<30))
}

// Count writes a number with thousands separated: 262,144.
func Count(n int) string {
	s := strconv.Itoa(n)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		return "-" + s
	}
	return s
}
