package turn

import (
	"fmt"
	"testing"
)

func TestRulePatternSeesItsSurroundings(t *testing.T) {
	for name, c := range map[string]struct {
		pattern, replacement, text, want string
		places                           int
	}{
		"inside a word":      {`\B\d{4}`, "0", "msg7734 and id1234.", "msg0 and id0.", 2},
		"group":              {`(?m)^id (\d+)-\d+$`, "id $1", "id 7-99\nid 8-11", "id 7\nid 8", 2},
		"already stable":     {`id \d`, "id 0", "id 0, id 1", "id 0, id 0", 1},
		"not in the text":    {`id \d`, "id 0", "none", "none", 0},
		"shorter and at end": {`t=\d+`, "", "now t=12", "now ", 1},
	} {
		rules, err := ReadRules([]byte(fmt.Sprintf(`[{"pattern": %q, "replacement": %q}]`, c.pattern, c.replacement)))
		if err != nil {
			t.Fatal(err)
		}
		if got, places := rules[0].apply(c.text); got != c.want || places != c.places {
			t.Errorf("%s: %q, %d places", name, got, places)
		}
	}
}
