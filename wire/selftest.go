package wire

// SelfTest is what `slipway-server selftest --json` prints. Set-up keeps it in its receipt.
type SelfTest struct {
	SchemaVersion int       `json:"schema_version"` // 1
	Version       string    `json:"version"`
	Quick         bool      `json:"quick"`
	GPU           *GPUFacts `json:"gpu"`    // null where Metal could not be opened
	Passed        bool      `json:"passed"` // Metal may be used, if need be with plain variants
	// Refusal is why it may not, a sentence.
	Refusal string `json:"refusal,omitempty"`
	// Degraded are the fast kernels that were replaced by plain ones, and why: sentences.
	Degraded []string `json:"degraded"`
	KernelReport
}

// KernelReport is the result of running every kernel.
type KernelReport struct {
	Device   string         `json:"device"`
	Numerics string         `json:"numerics"` // at the end, after all refusals
	Passed   bool           `json:"passed"`
	Seconds  float64        `json:"seconds"`
	Results  []KernelResult `json:"results"`
}

// KernelResult is one operation's.
type KernelResult struct {
	Operation string   `json:"operation"`
	Files     []string `json:"kernel_files"`
	// Difference is the largest, as a share of its row's largest value.
	Difference float64 `json:"difference"`
	Tolerance  float64 `json:"tolerance"`
	// Refused are the files that were refused until this operation was correct.
	Refused []string `json:"refused,omitempty"`
	// Unusable is the plain kernel file that alone supports this form and cannot be used: models that need it are
	// refused, the device is not.
	Unusable string `json:"unusable,omitempty"`
	// Failure is what is wrong even with plain kernels; empty when the operation is correct.
	Failure string `json:"failure,omitempty"`
}

// FirstFailure is the first operation that failed; nil when all are correct.
func (r KernelReport) FirstFailure() *KernelResult {
	for i := range r.Results {
		if r.Results[i].Failure != "" {
			return &r.Results[i]
		}
	}
	return nil
}
