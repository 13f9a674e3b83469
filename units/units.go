// Package units writes and reads sizes and counts. Memory is written in GiB, the unit in which a Mac has 36 "GB" of it:
// GiB and Binary. Files, downloads and disks are written in GB of 1,000,000,000 bytes, as the Finder and the hubs do:
// Short and AtLeast. A test of cmd/slipway holds that no screen mixes the two.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Short writes the size of a file, a download or a disk in three digits: "5.98 GB", "412 GB", "31.2 MB".
func Short(n int64) string {
	names, value, i := []string{"bytes", "kB", "MB", "GB", "TB"}, float64(n), 0
	for value >= 999.5 && i < len(names)-1 {
		value, i = value/1000, i+1
	}
	switch {
	case i == 0 || value >= 99.95:
		return fmt.Sprintf("%.0f %s", value, names[i])
	case value >= 9.995:
		return fmt.Sprintf("%.1f %s", value, names[i])
	}
	return fmt.Sprintf("%.2f %s", value, names[i])
}

// AtLeast writes a size as a flag takes it, rounded up to two or three digits: "3.1GB", "48GB", "9.6MB".
func AtLeast(n int64) string {
	names, unit, i := []string{"kB", "MB", "GB"}, 1e3, 0
	for float64(n) >= 1000*unit && i < len(names)-1 {
		unit, i = unit*1000, i+1
	}
	value := math.Ceil(float64(n)/unit*10) / 10
	if value >= 10 {
		value = math.Ceil(float64(n) / unit)
	}
	return strconv.FormatFloat(value, 'f', -1, 64) + names[i]
}

// Binary writes a size of memory in steps of 1,024, as the monitor's page does, so that both show the same figures.
func Binary(n int64) string {
	names, value, i := []string{"B", "KiB", "MiB", "GiB", "TiB"}, float64(n), 0
	for value >= 1024 && i < len(names)-1 {
		value, i = value/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, names[i])
}

// GiB writes a size of memory in GiB with one decimal, in MiB below 1 GiB: "26.9 GiB", "135 MiB".
func GiB(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// GiBAndGB is GiB with the decimal unit after it, for a size of memory that a person gave: "26.9 GiB (28.9 GB)".
func GiBAndGB(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%s (%.0f MB)", GiB(n), float64(n)/1e6)
	}
	return fmt.Sprintf("%s (%.1f GB)", GiB(n), float64(n)/1e9)
}

// Count writes a number with its thousands separated: 262,144.
func Count(n int) string {
	digits, sign := strconv.Itoa(n), ""
	if n < 0 {
		digits, sign = digits[1:], "-"
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// unitBytes are the units that ParseBytes reads.
var unitBytes = map[string]float64{
	"": 1, "B": 1, "k": 1e3, "kB": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// mostBytes bounds what is read: no memory, disk cache or rate of ours reaches 1 TiB.
const mostBytes = 1 << 40

// ParseBytes reads a size such as "20GB", "1.5 GiB" or "1000000": 1 byte to below 1 TiB. A number without a unit
// is bytes, and below a million it is refused: who writes 12 means GB.
func ParseBytes(text string) (n int64, ok bool) {
	text = strings.TrimSpace(text)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	unit, known := unitBytes[strings.TrimSpace(text[end:])]
	if !known || strings.Trim(text[:end], "0123456789.") != "" {
		return 0, false
	}
	number, err := strconv.ParseFloat(text[:end], 64)
	bytes := math.Round(number * unit)
	if err != nil || bytes < 1 || bytes >= mostBytes || unit == 1 && end == len(text) && bytes < 1e6 {
		return 0, false
	}
	return int64(bytes), true
}

// ParseRate reads bytes a second: a size, with or without "/s".
func ParseRate(text string) (bytesPerSecond int64, ok bool) {
	return ParseBytes(strings.TrimSuffix(text, "/s"))
}
