package machine

import (
	"encoding/json"
	"fmt"
	"io"
)

// MetalVerb is the hidden verb with which slipway starts itself to ask Metal: a driver that crashes or hangs then
// takes only the child down. The program must call MetalMain when it is its first argument.
const MetalVerb = "__metal"

// MetalReport is what Metal says of the default device.
type MetalReport struct {
	Name                         string `json:"name"`
	RecommendedMaxWorkingSetSize int64  `json:"recommended_max_working_set_size"` // bytes
	MaxBufferLength              int64  `json:"max_buffer_length"`                // bytes
	HasUnifiedMemory             bool   `json:"has_unified_memory"`
}

// MetalMain is all that the child does: one JSON document on out and status 0, or one sentence on errOut and status 1.
func MetalMain(out, errOut io.Writer) int {
	report, err := AskMetal()
	if err == nil {
		err = json.NewEncoder(out).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(errOut, err)
		return 1
	}
	return 0
}

func parseMetal(data []byte) (MetalReport, error) {
	var r MetalReport
	if err := json.Unmarshal(data, &r); err != nil {
		return MetalReport{}, fmt.Errorf("the answer of Metal is not readable: %w", err)
	}
	if r.Name == "" || r.RecommendedMaxWorkingSetSize <= 0 || r.MaxBufferLength <= 0 {
		return MetalReport{}, fmt.Errorf("the answer of Metal is incomplete: %s", data)
	}
	return r, nil
}

// EstimateWorkingSet is a guess at the recommended working set where Metal does not answer: two thirds of the memory up
// to 32 GiB, three quarters above. Seen: 10,922 MiB of 16 GB and 21,845 MiB of 32 GB (two thirds), 27 GiB of 36 GB and
// 48 GiB of 64 GB (three quarters), 107.5 GiB of 128 GB (more): the guess is at or below all of them.
func EstimateWorkingSet(ramBytes int64) int64 {
	if ramBytes <= 32<<30 {
		return ramBytes / 3 * 2
	}
	return ramBytes / 4 * 3
}
