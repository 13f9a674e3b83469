package operate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// The settings of every client name this server and this model, and are what their client's format is.
func TestConnectGivesSettingsOfEveryClient(t *testing.T) {
	o := &Operator{Caller: Caller{Say: func(string) {}}}
	o.Environment.Port = 8123
	if len(Clients()) < 14 {
		t.Fatalf("only %v", Clients())
	}
	for _, client := range Clients() {
		a, err := o.Connect(ConnectInput{Client: client})
		if err != nil {
			t.Fatal(client, err)
		}
		if strings.Contains(a.Text, "{{") || !strings.Contains(a.Text, "127.0.0.1:8123") ||
			!strings.Contains(a.Text, "pocket") && client != "open-webui" ||
			strings.Contains(strings.ToLower(a.Text), "retries") {
			t.Errorf("%s: %s", client, a.Text)
		}
		lines := strings.Split(a.Text, "\n")
		body := strings.Join(lines[1:], "\n") // behind the comment that says where it goes
		if strings.HasPrefix(body, "{") && !json.Valid([]byte(body)) {
			t.Errorf("%s is no JSON: %s", client, body)
		}
	}
	var codex struct {
		Model     string `toml:"model"`
		Window    int    `toml:"model_context_window"`
		Providers map[string]struct {
			BaseURL string `toml:"base_url"`
			Wire    string `toml:"wire_api"`
		} `toml:"model_providers"`
	}
	a, _ := o.Connect(ConnectInput{Client: "codex"})
	if _, err := toml.Decode(a.Text, &codex); err != nil || codex.Model != "pocket" ||
		codex.Window != defaultWindowTokens ||
		codex.Providers["slipway"].BaseURL != "http://127.0.0.1:8123/v1" ||
		codex.Providers["slipway"].Wire != "responses" {
		t.Errorf("%+v, %v", codex, err)
	}
	if a, _ := o.Connect(ConnectInput{Client: "claude-code"}); !strings.Contains(a.Text,
		"ANTHROPIC_BASE_URL=\"http://127.0.0.1:8123\"\n") {
		t.Errorf("the wire's client adds /v1 by itself: %s", a.Text)
	}
}
