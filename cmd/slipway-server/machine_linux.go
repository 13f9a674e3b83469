package main

import (
	"os"
	"strconv"
	"strings"

	"slipway/wire"
)

func askMachine(m *wire.Machine) {
	if raw, err := os.ReadFile("/proc/meminfo"); err == nil {
		at := meminfo(string(raw))
		if total, ok := at["MemTotal"]; ok {
			m.RAMBytes = known(total)
		}
		if available, ok := at["MemAvailable"]; ok {
			m.AvailableBytes = known(available)
		}
		if total, ok := at["SwapTotal"]; ok {
			m.SwapUsedBytes = known(total - at["SwapFree"])
		}
	}
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(raw)); len(fields) > 1 {
			if pages, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				m.OwnBytes = known(pages * int64(os.Getpagesize()))
			}
		}
	}
	if raw, err := os.ReadFile("/proc/pressure/memory"); err == nil {
		m.Pressure = stalled(string(raw))
	}
}

// meminfo reads lines such as "MemTotal:       24735360 kB" as bytes.
func meminfo(text string) map[string]int64 {
	at := map[string]int64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			at[strings.TrimSuffix(fields[0], ":")] = n << 10
		}
	}
	return at
}

// stalled reads pressure stall information: the share of the last 10 seconds in which some task waited for memory. The
// borders 10 and 40 % are ours, the same as set-up's.
func stalled(text string) string {
	for field := range strings.FieldsSeq(text) {
		value, ok := strings.CutPrefix(field, "avg10=")
		if !ok {
			continue
		}
		share, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
			return ""
		case share >= 40:
			return "critical"
		case share >= 10:
			return "warning"
		}
		return "normal"
	}
	return ""
}
