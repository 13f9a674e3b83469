package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Rule is a rule of normalisation: every match of Pattern, in Go's syntax, becomes Replacement, where $1 is the first
// group. A file holds a JSON array of them.
type Rule struct {
	Pattern     *string `json:"pattern"`
	Replacement *string `json:"replacement"`
}

// ReadRules reads a file of rules. Every rule of a result has both members, a pattern that compiles, and one that
// does not match the empty text. The error names the first rule that has not.
func ReadRules(data []byte) ([]Rule, error) {
	var rules []Rule
	// editors write a mark of order
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rules); err != nil {
		return nil, fmt.Errorf(`it must be one JSON array of {"pattern": "...", "replacement": "..."}: %w`, err)
	}
	if decoder.More() {
		return nil, errors.New(`it must be one JSON array of {"pattern": "...", "replacement": "..."}, and something follows it`)
	}
	for i, r := range rules {
		if r.Pattern == nil || r.Replacement == nil || *r.Pattern == "" {
			return nil, fmt.Errorf("rule %d needs a pattern and a replacement", i+1)
		}
		pattern, err := regexp.Compile(*r.Pattern)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		if pattern.MatchString("") {
			return nil, fmt.Errorf("rule %d matches the empty text, and so everywhere", i+1)
		}
	}
	return rules, nil
}
