package consent

import "regexp"

// A terminal reports its cursor as ESC [ row ; column R, in the middle of what is typed.

// cutCursorReport finds a report in what arrived and returns what stood before and after it.
func cutCursorReport(b []byte) (before, after []byte, ok bool) {
	at := wholeReport.FindIndex(b)
	if at == nil {
		return nil, nil, false
	}
	return b[:at[0]], b[at[1]:], true
}

// beginsReport is the end of what arrived that may be the beginning of a report.
func beginsReport(b []byte) []byte { return reportBegins.Find(b) }

// withoutReports is a line without the reports in it, also without one whose end a person has deleted.
func withoutReports(line []byte) string { return string(anyReport.ReplaceAll(line, nil)) }

var (
	wholeReport  = regexp.MustCompile(`\x1b\[[0-9]+;[0-9]+R`)
	reportBegins = regexp.MustCompile(`\x1b(\[[0-9;]*)?$`)
	anyReport    = regexp.MustCompile(`\x1b\[[0-9;]*R?`)
)
