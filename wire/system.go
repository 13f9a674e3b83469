package wire

import "time"

// System is the answer of GET /slipway/system: what changes slowly, for the monitor, slipway status and other
// programs that watch.
type System struct {
	SchemaVersion int       `json:"schema_version"` // 1
	At            time.Time `json:"at"`
	Process       Process   `json:"process"`
	Memory        *Memory   `json:"memory"`  // null where unknown
	Machine       *Machine  `json:"machine"` // null where unknown
	GPU           *GPU      `json:"gpu"`     // null where the CPU answers
	Launch        *Launch   `json:"launch"`  // null where no installer launched it
	Totals        Totals    `json:"totals"`
	History       History   `json:"history"`
}

// Process is the server's process.
type Process struct {
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	LaunchID string    `json:"launch_id,omitempty"`
	// SnippetsShown: the differing texts of misses are sent, as the server listens on loopback alone.
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

// GPU is what the GPU worked on passes since the server began, by its own clock. A prefill pass takes in tokens of a
// prompt, a decode pass one token of every reply.
type GPU struct {
	Prefill GPUPhase `json:"prefill"`
	Decode  GPUPhase `json:"decode"`
}

// GPUPhase is the passes of a phase.
type GPUPhase struct {
	Seconds float64 `json:"seconds"`
	Passes  int     `json:"passes"`
}

// Machine is the machine's state. What the system does not say is null or empty.
type Machine struct {
	RAMBytes       *int64 `json:"ram_bytes"`
	AvailableBytes *int64 `json:"available_bytes"` // without swapping
	SwapUsedBytes  *int64 `json:"swap_used_bytes"`
	OwnBytes       *int64 `json:"own_bytes"` // of this process, Metal's memory included
	Pressure       string `json:"pressure"`  // of memory: normal, warning or critical
}

// Totals are the counters of /metrics: requests that have ended.
type Totals struct {
	Requests         map[string]int `json:"requests"`
	PromptTokens     int            `json:"prompt_tokens"` // cached + computed
	CachedTokens     int            `json:"cached_tokens"`
	ComputedTokens   int            `json:"computed_tokens"`
	CompletionTokens int            `json:"completion_tokens"`
}

// History is the last hour, in steps of StepS seconds; steps in which nothing happened are left out.
type History struct {
	StepS int    `json:"step_s"`
	Steps []Step `json:"steps"` // oldest first
}

// Step counts tokens as they were dealt with, not when their request ended.
type Step struct {
	Start            time.Time `json:"start"`
	CachedTokens     int       `json:"cached_tokens"`
	ComputedTokens   int       `json:"computed_tokens"`
	CompletionTokens int       `json:"completion_tokens"`
	Ended            int       `json:"ended"` // requests
}
