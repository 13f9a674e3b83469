package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
)

// MaxNormalizeBytes bounds a file of normalize rules; one rule has about 80 bytes.
const MaxNormalizeBytes = 64 << 10

// ReadNormalize reads a file of normalize rules, a JSON array of {"pattern", "replacement"} where patterns are Go's regular
// expressions, and gives them in one form, the same for the same rules: a request carries the rules themselves, so that a
// plan does not depend on a file that may change. No rules give "". The server reads the same form once more.
func ReadNormalize(data []byte) (string, error) {
	type rule struct {
		Pattern     *string `json:"pattern"`
		Replacement *string `json:"replacement"`
	}
	var rules []rule
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rules); err != nil || decoder.More() {
		return "", fmt.Errorf(`it must be one JSON array of {"pattern": "...", "replacement": "..."}`)
	}
	for i, r := range rules {
		if r.Pattern == nil || r.Replacement == nil || *r.Pattern == "" {
			return "", fmt.Errorf("rule %d needs a pattern and a replacement", i+1)
		}
		pattern, err := regexp.Compile(*r.Pattern)
		if err != nil {
			return "", fmt.Errorf("rule %d: %w", i+1, err)
		}
		if pattern.MatchString("") {
			return "", fmt.Errorf("rule %d matches the empty text, and so everywhere", i+1)
		}
	}
	if len(rules) == 0 {
		return "", nil
	}
	canonical, err := Canonical(rules)
	return string(canonical), err
}

// NormalizePath is where a copy of the rules is kept for the server, below the home: named for its content, so that other
// rules are another setting. "" without rules.
func NormalizePath(rules string) string {
	if rules == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(rules))
	return "state/normalize-" + hex.EncodeToString(sum[:8]) + ".json"
}
