package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"slipway/atomicfile"
	"slipway/fault"
)

// A plan file is the plan written for a reader: two-space JSON, one newline at the end, always the same bytes for the
// same plan. Only its request and its digest have effect: the plan is made again from the request, and the file must
// then be, byte for byte, what that plan writes.

// ErrFile says what is wrong with a plan file.
type ErrFile struct {
	Why   string
	Again []string // arguments of plan that make such a plan anew, without the home
}

func (e *ErrFile) Error() string { return "plan file: " + e.Why }

// Fault: see package fault.
func (e *ErrFile) Fault() fault.Fault {
	return fault.Fault{Class: fault.Stale, Step: fault.PlanAgain, Args: e.Again}
}

// ChangedError: the same request makes another plan now.
type ChangedError struct {
	What  []string // parts of the decisions that differ
	Again []string // arguments of plan that make it anew, without the home
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the machine changed since the plan was made (%s)", strings.Join(e.What, ", "))
}

// Fault: see package fault.
func (e *ChangedError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Stale, Step: fault.PlanAgain, Args: e.Again}
}

// MaxFileBytes bounds a plan file; a real one has about 5 KB.
const MaxFileBytes = 1 << 20

// WriteFile gives the bytes of the plan file.
func WriteFile(p Plan) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		panic("plan: a plan that cannot be written: " + err.Error())
	}
	return out.Bytes()
}

// ReadFile takes request, home and digest from a plan file. Everything else in it is for the reader only.
func ReadFile(data []byte) (request Request, home, digest string, err error) {
	if len(data) > MaxFileBytes {
		return Request{}, "", "", &ErrFile{Why: fmt.Sprintf("has more than %d bytes, and no plan has", MaxFileBytes)}
	}
	if why := atomicfile.Edited(data); why != "" {
		return Request{}, "", "", &ErrFile{Why: why}
	}
	var p Plan
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return Request{}, "", "", &ErrFile{Why: err.Error()}
	}
	if p.SchemaVersion != SchemaVersion {
		return Request{}, "", "", &ErrFile{Why: fmt.Sprintf("has schema version %d, this program reads %d",
			p.SchemaVersion, SchemaVersion)}
	}
	return p.Decisions.Request, p.Decisions.Home, p.Digest, nil
}

// OfEarlierVersion reports whether a plan file is whole and was made by a version of slipway whose digests covered the
// words of a plan. Such a plan has to be made again.
func OfEarlierVersion(data []byte) bool {
	var p Plan
	return json.Unmarshal(data, &p) == nil && p.Digest != "" && wordedDigest(p) == p.Digest
}
