package plan

import (
	"crypto/sha256"
	"encoding/hex"

	"slipway/wire"
)

// MaxNormalizeBytes bounds a file of normalize rules; one rule has about 80 bytes.
const MaxNormalizeBytes = 64 << 10

// ReadNormalize reads a file of [wire.Rule]s and gives them in one form, the same for the same rules: a request
// carries the rules themselves, so that a plan does not depend on a file that may change. No rules give "".
func ReadNormalize(data []byte) (string, error) {
	rules, err := wire.ReadRules(data)
	if err != nil {
		return "", err
	}
	if len(rules) == 0 {
		return "", nil
	}
	canonical, err := Canonical(rules)
	return string(canonical), err
}

// NormalizePath is where a copy of the rules is kept for the server, below the home: named for its content, so that
// other rules are another setting. "" without rules.
func NormalizePath(rules string) string {
	if rules == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(rules))
	return "state/normalize-" + hex.EncodeToString(sum[:8]) + ".json"
}
