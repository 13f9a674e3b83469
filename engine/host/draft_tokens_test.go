package host

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"slipway/engine/draft"
	"slipway/wire"
)

// drafts40 asks for 40 tokens with one more member of the request, and gives the status, the error's text and the
// usage.
func drafts40(t *testing.T, url, member string) (status int, text string, usage wire.Usage) {
	t.Helper()
	ask := `{"model": "pocket", "messages": [{"role": "user", "content": "Tell me about boats."}], "max_tokens": 40, ` +
		`"temperature": 0, "logit_bias": {"4088": -100}` + member + `}`
	post, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	defer post.Body.Close()
	raw, err := io.ReadAll(post.Body)
	if err != nil {
		t.Fatal(err)
	}
	var reply struct{ Usage wire.Usage }
	if err := json.Unmarshal(raw, &reply); err != nil {
		t.Fatal(err)
	}
	return post.StatusCode, string(raw), reply.Usage
}

func TestRequestChoosesHowManyTokensAreDrafted(t *testing.T) {
	k := startKept(t, func(s *Settings) { s.Draft, s.DraftTokens = "mtp", 2 })
	places := func() (n int) {
		records, _ := k.engine.Ledger().Records(0)
		for _, p := range records[len(records)-1].Usage.Drafts.At {
			if p.Drafted > 0 {
				n++
			}
		}
		return n
	}
	for member, want := range map[string]int{"": 2, `, "slipway": {}`: 2, `, "slipway": {"draft_tokens": 0}`: 0,
		`, "slipway": {"draft_tokens": 1}`: 1, `, "slipway": {"draft_tokens": 4}`: 4} {
		if status, text, _ := drafts40(t, k.URL, member); status != http.StatusOK || places() != want {
			t.Errorf("%s: status %d, up to %d tokens were drafted at a time, want %d: %s", member, status, places(),
				want,
				text)
		}
	}
	for member, want := range map[string]string{
		`, "slipway": {"draft_tokens": 5}`:  "at most 4",
		`, "slipway": {"draft_tokens": -1}`: "slipway.draft_tokens",
		`, "slipway": {"draft": "mtp"}`:     "slipway.draft",
		`, "slipway": 3`:                    "must be an object",
	} {
		if status, text, _ := drafts40(t, k.URL, member); status != http.StatusBadRequest ||
			!strings.Contains(text, want) {
			t.Errorf("%s: status %d, wanted 400 with %q: %s", member, status, want, text)
		}
	}
}

func TestRequestForDraftsIsRefusedWithoutADraft(t *testing.T) {
	k := startKept(t, func(*Settings) {})
	status, text, _ := drafts40(t, k.URL, `, "slipway": {"draft_tokens": 1}`)
	if status != http.StatusBadRequest || !strings.Contains(text, "start it with --draft") {
		t.Errorf("status %d: %s", status, text)
	}
	if status, text, usage := drafts40(t, k.URL, `, "slipway": {"draft_tokens": 0}`); status != http.StatusOK ||
		usage.CompletionTokens != 40 {
		t.Errorf("status %d: %s", status, text)
	}
}

// The number that is drafted at a time can be changed while the server runs.
func TestDraftTokensAreSetWhileTheServerRuns(t *testing.T) {
	k := startKept(t, func(s *Settings) { s.Draft = "mtp" })
	watched := func() wire.WatchedServer {
		response, err := http.Get(k.URL + "/slipway/requests")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var now wire.Watching
		if err := json.NewDecoder(response.Body).Decode(&now); err != nil {
			t.Fatal(err)
		}
		return now.Server
	}
	if s := watched(); s.Draft != "mtp" || s.DraftTokens != 1 || s.MostDraftTokens != draft.MostDepth {
		t.Errorf("at first %s, %d of %d tokens", s.Draft, s.DraftTokens, s.MostDraftTokens)
	}
	set := func(body string) int {
		response, err := http.Post(k.URL+"/slipway/draft", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	for _, n := range []int{3, 0} {
		if status := set(fmt.Sprintf(`{"tokens": %d}`, n)); status != http.StatusOK || watched().DraftTokens != n {
			t.Errorf("set to %d: status %d, %d are in force", n, status, watched().DraftTokens)
		}
		_, _, usage := drafts40(t, k.URL, "")
		d := usage.CompletionDetails
		if drafted := d.AcceptedPredictionTokens + d.RejectedPredictionTokens; (drafted > 0) != (n > 0) {
			t.Errorf("set to %d, %d tokens were drafted", n, drafted)
		}
	}
	for _, body := range []string{"", "{}", `{"tokens": 5}`, `{"tokens": -1}`, `{"tokens": 1, "more": 1}`} {
		if status := set(body); status != http.StatusBadRequest || watched().DraftTokens != 0 {
			t.Errorf("%s: status %d, %d are in force", body, status, watched().DraftTokens)
		}
	}
}
