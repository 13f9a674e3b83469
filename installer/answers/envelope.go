// Package answers holds the documents of slipway's verbs: what the command line prints with --json, and what any other
// caller of the verbs returns. The data of each verb is the answer struct of its function; the schema is made of that
// type, so it cannot differ from what the program writes.
package answers

// SchemaVersion is the version of the envelope. It changes when a reader of documents must change.
const SchemaVersion = 1

// Envelope is one document. Exactly one of Data and Error is present: Data when the verb could do or answer what it was
// asked, also when the exit code says that changes are pending or something is blocked.
type Envelope struct {
	OK            bool   `json:"ok"`
	SchemaVersion int    `json:"schema_version"`
	Data          any    `json:"data,omitempty"`
	Error         *Error `json:"error,omitempty"`
	Meta          Meta   `json:"meta"`
}

// Error is why a verb did not do what it was asked.
type Error struct {
	Code      string   `json:"code"` // name of the exit code
	Message   string   `json:"message"`
	Details   any      `json:"details,omitempty"`
	Retryable bool     `json:"retryable"`
	Next      []string `json:"next"` // argv of the next step; empty when a person must act first
}

// Meta says which program answered and how.
type Meta struct {
	Command  string `json:"command"`
	Version  string `json:"version"`
	ExitCode int    `json:"exit_code"`
	Toy      bool   `json:"toy"` // the model is the one inside this program, which is no chat model

	OpenPlan *OpenPlan `json:"open_plan"` // of the verb's home; null without one
}

// OpenPlan is a plan that was begun and not finished, and on which no slipway works now.
type OpenPlan struct {
	Digest   string   `json:"digest"`
	Continue []string `json:"continue"` // argv that continues it
}
