// Package checks judges: whether a machine is ready, and later how a server behaves. It sees a machine through a value
// of its own and a server through a URL, so that it can judge a peer's server too.
package checks

// Status is how a check came out.
type Status string

const (
	Pass    Status = "pass"
	Warn    Status = "warn"    // works, with a consequence that a person should know
	Fail    Status = "fail"    // does not work
	Unknown Status = "unknown" // could not be learnt
)

// Severity is what a status other than pass means for going on.
type Severity string

const (
	Blocker Severity = "blocker" // nothing is done until it is mended
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Check is one record. ID is stable. Observed, Expected and Fix are sentences or clauses for people; Fix and Command
// are empty when there is nothing to do. Command is an exact argv for a person to run; slipway never runs it.
type Check struct {
	ID       string   `json:"id"`
	Status   Status   `json:"status"`
	Severity Severity `json:"severity"`
	Observed string   `json:"observed"`
	Expected string   `json:"expected"`
	Fix      string   `json:"fix"`
	Command  []string `json:"command"`
	DocsURL  string   `json:"docs_url"`
}

// Blockers are the failed checks that stop everything, in order.
func Blockers(all []Check) []Check {
	var blockers []Check
	for _, c := range all {
		if c.Status == Fail && c.Severity == Blocker {
			blockers = append(blockers, c)
		}
	}
	return blockers
}
