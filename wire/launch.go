package wire

// LaunchPath is the file, below the home, in which a server finds what was decided for it, to show it in its monitor.
const LaunchPath = "run/launch.json"

// Launch is what that file holds: names, numbers and sentences that anybody at this machine may see.
type Launch struct {
	SchemaVersion int        `json:"schema_version"` // 1
	Profile       string     `json:"profile"`
	BudgetBytes   int64      `json:"budget_bytes"` // 0: no budget was planned
	Limit         string     `json:"limit"`        // the sentence that names the limit that binds and what was given up
	Neighbors     []Neighbor `json:"neighbors"`
}

// Neighbor is another server that was stopped for this one and is started again afterwards.
type Neighbor struct {
	Title    string   `json:"title"`
	Port     int      `json:"port"`
	Models   []string `json:"models"`
	Sentence string   `json:"sentence"` // what happened to it and what will
}
