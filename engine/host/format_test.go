package host

import (
	"encoding/json"
	"testing"
)

// A reply that is held to a schema is the same with each draft as without, greedily, and valid: proposed tokens pass
// the same masks, also behind a rejected one.
func TestRepliesOfAFormatAreTheSameWithADraft(t *testing.T) {
	format := message{"max_tokens": 120, "response_format": message{"type": "json_schema", "json_schema": message{
		"name": "codes", "schema": json.RawMessage(`{"type":"object","properties":{"codes":{"type":"array","minItems":2,
			"maxItems":5,"items":{"type":"string","pattern":"^[A-Z]{2}[0-9]{2}$"}},"done":{"type":"boolean"}},
			"required":["codes","done"],"additionalProperties":false}`)}}}
	questions := []string{"List three codes as JSON.", "What is the code of the second box?"}
	var plain []string
	for _, draft := range []string{"", "mtp", "dflash2"} {
		k := startKept(t, func(s *Settings) {
			s.Draft, s.WindowTokens, s.CacheMemoryBytes, s.CacheDiskBytes = draft, 1024, 0, 0
		})
		for i, question := range questions {
			got := k.ask([]message{user(question)}, format).content
			if draft == "" {
				plain = append(plain, got)
			}
			if got != plain[i] {
				t.Errorf("%s: %q, without a draft %q", draft, got, plain[i])
			}
			var v struct {
				Codes []string
				Done  *bool
			}
			if err := json.Unmarshal([]byte(got), &v); err != nil || len(v.Codes) < 2 || v.Done == nil {
				t.Errorf("%s: %q: %v", draft, got, err)
			}
		}
		k.stop()
	}
}
