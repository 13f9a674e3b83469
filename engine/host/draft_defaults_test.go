package host

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/engine/api"
)

// The model's own sampling is in force where a request says nothing, with a draft as without: the reply is that of a
// request that says it all, and another one than a request's that says otherwise.
func TestSamplingDefaultsOfTheModelAreInForceWithAndWithoutADraft(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(pocketDir, "generation_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var own struct {
		Temperature float64 `json:"temperature"`
		TopP        float64 `json:"top_p"`
		TopK        int     `json:"top_k"`
	}
	if err := json.Unmarshal(raw, &own); err != nil || own.TopP == 1 || own.TopK == 0 || own.Temperature == 0 {
		t.Fatalf("%+v, %v: the model states no defaults that this test could see", own, err)
	}
	for _, draft := range []string{"none", "mtp", "dflash2"} {
		h := startDrafted(t, draft, 0, 0)
		server := httptest.NewServer(api.New(h.Answers(api.Options{ModelID: "pocket", Version: "v", Started: time.Now(),
			BodyBytes: 1 << 20, KeepAlive: time.Hour, Now: time.Now, Log: quiet()})).Handler())
		t.Cleanup(server.Close)
		ask := func(seed int, fields string) string {
			prompt := "The file says: if any chunk is"
			body := fmt.Sprintf(`{"model": "pocket", "prompt": %q, "max_tokens": 24, "seed": %d%s}`, prompt, seed,
				fields)
			post, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+"/v1/completions",
				strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			post.Header.Set("Content-Type", "application/json")
			response, err := http.DefaultClient.Do(post)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			var reply struct{ Choices []struct{ Text string } }
			if err := json.NewDecoder(response.Body).Decode(&reply); err != nil || len(reply.Choices) != 1 {
				t.Fatalf("status %d, %v", response.StatusCode, err)
			}
			return reply.Choices[0].Text
		}
		stated := fmt.Sprintf(`, "temperature": %g, "top_p": %g, "top_k": %d`, own.Temperature, own.TopP, own.TopK)
		drafting := ""
		if draft != "none" {
			drafting = `, "slipway": {"draft_tokens": 2}`
		}
		different := 0
		for seed := range 4 {
			silent := ask(seed, drafting)
			if same := ask(seed, stated+drafting); silent != same {
				t.Errorf("--draft %s: %q by default, %q with the model's own values", draft, silent, same)
			}
			if silent != ask(seed, `, "temperature": 1.5, "top_p": 1, "top_k": 0`+drafting) {
				different++
			}
		}
		if different == 0 {
			t.Errorf("--draft %s: every sampling gives the same, so this test sees nothing", draft)
		}
	}
}
