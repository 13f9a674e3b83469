package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"slipway/engine/api/turn"
	"slipway/engine/memory/keep"
)

func TestFreshIDInTheSystemPromptIsExplained(t *testing.T) {
	k := startKept(t, nil)
	rules := k.document(13, 300)
	var last keep.Report
	for i := range 4 {
		k.ask([]message{system(fmt.Sprintf("Request id: %08x. %s", 0x1a2b3c4d+i*0x01234567, rules)), user("Hello.")},
			message{"max_tokens": 2})
		reports := k.host.keeper.Reports()
		last = reports[len(reports)-1]
	}
	if !last.Volatile || last.Change == nil || !strings.Contains(last.Change.Place, "Request id") ||
		last.Change.Old == last.Change.New {
		t.Errorf("explained as %+v, change %+v", last.Explanation, last.Change)
	}
}

func TestNormalizeRuleMakesAFreshIDHitAndTheResponseSaysSo(t *testing.T) {
	rules, err := turn.ReadRules([]byte(`[{"pattern": "Request id: [0-9a-f]{8}", "replacement": "Request id: 0"}]`))
	if err != nil {
		t.Fatal(err)
	}
	k := startKept(t, func(s *Settings) { s.Normalize = rules })
	text := k.document(13, 300)
	ask := func(i int) (asked, string) {
		conversation := []message{system(fmt.Sprintf("Request id: %08x. %s", 0x1a2b3c4d+i*0x01234567, text)),
			user("Hello.")}
		response, err := http.Post(k.URL+"/v1/chat/completions", "application/json",
			bytes.NewReader(body(conversation, message{"max_tokens": 2})))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var r struct{ Slipway struct{ Notice string } }
		if err := json.NewDecoder(response.Body).Decode(&r); err != nil {
			t.Fatal(err)
		}
		return k.ask(conversation, message{"max_tokens": 2}), r.Slipway.Notice
	}
	ask(0)
	for i := 1; i < 4; i++ {
		before := len(k.prompts)
		_, notice := ask(i)
		reports := k.host.keeper.Reports()
		if r := reports[len(reports)-2]; r.Prompt-r.Cached > slack || !slices.Equal(k.prompts[before], k.prompts[0]) {
			t.Errorf("request %d: %d of %d tokens were restored", i, r.Cached, r.Prompt)
		}
		if !strings.Contains(notice, "replaced 1 place in") {
			t.Errorf("the response says %q", notice)
		}
	}
}
