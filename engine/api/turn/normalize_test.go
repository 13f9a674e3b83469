package turn_test

import (
	"strings"
	"testing"

	"slipway/engine/api/turn"
)

func TestInvalidRulesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"no JSON":              {`pattern`, "must be one JSON array"},
		"unknown member":       {`[{"pattern":"a","replacement":"b","flags":"i"}]`, "must be one JSON array"},
		"no replacement":       {`[{"pattern":"a"}]`, "rule 1 needs"},
		"no regular expr":      {`[{"pattern":"a","replacement":""},{"pattern":"(","replacement":""}]`, "rule 2"},
		"matches empty text":   {`[{"pattern":"a*","replacement":"b"}]`, "matches the empty text"},
		"empty pattern":        {`[{"pattern":"","replacement":"b"}]`, "rule 1 needs"},
		"object, not an array": {`{"pattern":"a","replacement":"b"}`, "must be one JSON array"},
	} {
		if _, err := turn.ReadRules([]byte(c.raw)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rules, err := turn.ReadRules([]byte(`[{"pattern":"id (\\d+)-\\d+","replacement":"id $1"}]`))
	if err != nil || len(rules) != 1 || rules[0].Pattern.ReplaceAllString("id 7-99", rules[0].Replacement) != "id 7" {
		t.Errorf("%v, %v", rules, err)
	}
}
