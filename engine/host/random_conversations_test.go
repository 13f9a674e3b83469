package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
)

// Random conversations against a server with a cache and one without: the greedy answers are equal.
func TestRandomConversationsGetTheAnswersOfAFreshServer(t *testing.T) {
	k := startKept(t, func(s *Settings) { s.WindowTokens, s.CacheMemoryBytes = 1024, 24<<20 })
	fresh := startKept(t, func(s *Settings) { s.WindowTokens, s.CacheMemoryBytes = 1024, 0 })
	r := rand.New(rand.NewPCG(5, 5))
	requests := 24
	if os.Getenv("SLIPWAY_SOAK") != "" {
		requests = 300
	}
	short := message{"max_tokens": 6}
	restored := 0
	var conversation []message
	for i := range requests {
		switch {
		case len(conversation) == 0 || r.IntN(6) == 0:
			conversation = []message{system("Be brief. " + k.document(uint64(r.IntN(3)), 60)),
				user(fmt.Sprintf("Topic %d.", r.IntN(5)))}
		case r.IntN(4) == 0: // edit
			conversation[len(conversation)-1] = user(fmt.Sprintf("Rather topic %d.", r.IntN(50)))
		case r.IntN(8) == 0: // leave in the middle, go on with what came
			part := k.leave(conversation, 1+r.IntN(9), 0)
			conversation = append(conversation, message{"role": "assistant", "content": part}, user("Go on."))
		}
		a := k.ask(conversation, short)
		restored += a.prompt - a.computed
		b := fresh.replay(k, short)
		if strings.TrimSpace(a.content) != strings.TrimSpace(b) {
			t.Fatalf("request %d: %q, a fresh server says %q", i, a.content, b)
		}
		conversation = append(conversation, a.message(), user(fmt.Sprintf("And %d?", r.IntN(9))))
		if len(conversation) > 9 {
			conversation = nil
		}
	}
	if restored < 20*requests {
		t.Errorf("only %d tokens were restored in %d requests", restored, requests)
	}
}

// replay computes the same ids from nothing, which is the answer that a fresh engine gives to them.
func (k *kept) replay(from *kept, more message) string {
	k.t.Helper()
	from.mu.Lock()
	prompt := from.prompts[len(from.prompts)-1]
	from.mu.Unlock()
	raw, err := json.Marshal(message{"model": "pocket", "prompt": prompt, "max_tokens": more["max_tokens"]})
	if err != nil {
		k.t.Fatal(err)
	}
	response, err := http.Post(k.URL+"/v1/completions", "application/json", bytes.NewReader(raw))
	if err != nil {
		k.t.Fatal(err)
	}
	defer response.Body.Close()
	var r struct{ Choices []struct{ Text string } }
	if err := json.NewDecoder(response.Body).Decode(&r); err != nil || len(r.Choices) != 1 {
		k.t.Fatalf("%v, %d choices", err, len(r.Choices))
	}
	return r.Choices[0].Text
}
