package api

import (
	"time"

	"slipway/engine/serve"
)

// The wire type of GET /slipway/system: what changes slowly, for the monitor, slipway status and other programs that watch.
// Members are only ever added.
type system struct {
	SchemaVersion int           `json:"schema_version"` // 1
	At            time.Time     `json:"at"`
	Process       systemProcess `json:"process"`
	Memory        *Memory       `json:"memory"`  // null where the program does not tell
	Machine       *Machine      `json:"machine"` // null where the program does not tell
	GPU           *GPU          `json:"gpu"`     // null where the CPU answers
	Launch        *Launch       `json:"launch"`  // null where no installer launched it
	Totals        systemTotals  `json:"totals"`
	History       systemHistory `json:"history"`
}

type systemProcess struct {
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	LaunchID string    `json:"launch_id,omitempty"`
	// The differing texts of misses are told, as the server listens on loopback alone.
	SnippetsShown bool `json:"snippets_shown"`
}

// Memory is what the model holds, in bytes. Pools are counted full; a device may give their memory only as it is used.
type Memory struct {
	Loaded            bool  `json:"loaded"` // false: given back until the next request
	WeightsBytes      int64 `json:"weights_bytes"`
	ContextBytes      int64 `json:"context_bytes"` // KV pages and recurrent states of the requests under way
	WorkBytes         int64 `json:"work_bytes"`    // activations of one pass
	PointsBudgetBytes int64 `json:"points_budget_bytes"`
}

// GPU is what the GPU worked on passes since the server began, by its own clock. A prefill pass takes in tokens of a prompt; a decode pass
// one token of every reply.
type GPU struct {
	Prefill GPUPhase `json:"prefill"`
	Decode  GPUPhase `json:"decode"`
}

// GPUPhase is the passes of a phase.
type GPUPhase struct {
	Seconds float64 `json:"seconds"`
	Passes  int     `json:"passes"`
}

// Machine is the machine's state. What the system does not tell is null or empty.
type Machine struct {
	RAMBytes       *int64 `json:"ram_bytes"`
	AvailableBytes *int64 `json:"available_bytes"` // without swapping
	SwapUsedBytes  *int64 `json:"swap_used_bytes"`
	OwnBytes       *int64 `json:"own_bytes"` // of this process, Metal's memory included
	Pressure       string `json:"pressure"`  // of memory: normal, warning or critical
}

// Launch is what the installer decided and left behind for those who watch.
type Launch struct {
	SchemaVersion int        `json:"schema_version"` // 1
	Profile       string     `json:"profile"`
	BudgetBytes   int64      `json:"budget_bytes"` // 0: none was reckoned with
	Limit         string     `json:"limit"`        // the sentence that names the limit that binds and what was given up
	Neighbors     []Neighbor `json:"neighbors"`
}

// Neighbor is another server that was stopped for this one and is started again afterwards.
type Neighbor struct {
	Title    string   `json:"title"`
	Port     int      `json:"port"`
	Models   []string `json:"models"`
	Sentence string   `json:"sentence"` // how it stands
}

// systemTotals are the counters of /metrics: requests that have ended.
type systemTotals struct {
	Requests         map[serve.FinishReason]int `json:"requests"`
	PromptTokens     int                        `json:"prompt_tokens"` // cached + computed
	CachedTokens     int                        `json:"cached_tokens"`
	ComputedTokens   int                        `json:"computed_tokens"`
	CompletionTokens int                        `json:"completion_tokens"`
}

// systemHistory is the last hour, in steps of StepS seconds; steps in which nothing happened are left out.
type systemHistory struct {
	StepS int          `json:"step_s"`
	Steps []systemStep `json:"steps"` // oldest first
}

// systemStep counts tokens as they were dealt with, not when their request ended.
type systemStep struct {
	Start            time.Time `json:"start"`
	CachedTokens     int       `json:"cached_tokens"`
	ComputedTokens   int       `json:"computed_tokens"`
	CompletionTokens int       `json:"completion_tokens"`
	Ended            int       `json:"ended"` // requests
}
