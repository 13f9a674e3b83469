package neighbor

import (
	"encoding/json"
	"time"

	"slipway/installer/neighbor/record"
)

var ollama = kind{
	id: "ollama", title: "Ollama", ports: []int{11434},
	runs: func(c command) bool { return c.named("ollama", "Ollama") && c.verb("serve") },
	answers: func(l *look) bool {
		r := l.get("/api/version")
		_, ok := r.text("version")
		return r.status == 200 && ok && string(l.get("/").body) == "Ollama is running"
	},
	models: func(l *look) ([]record.Model, bool) {
		list, ok := l.get("/api/ps").list("models")
		var models []record.Model
		for _, entry := range list {
			id, _ := at(entry, "name")
			name, is := id.(string)
			if !is {
				return nil, false
			}
			expires, _ := at(entry, "expires_at")
			window, _ := at(entry, "context_length")
			settings, err := json.Marshal(map[string]any{"expires_at": expires, "context_length": window})
			if err != nil {
				return nil, false
			}
			models = append(models, record.Model{ID: name, Settings: settings})
		}
		return models, ok
	},
	idle: func(l *look, t *sample) {
		r := l.get("/api/ps")
		if !t.asked(r, "/api/ps") {
			return
		}
		models, ok := r.list("models")
		if !ok {
			t.isUnknown("models is missing")
			return
		}
		// There is no field for it. expires_at is written when the last request on a model ends: in the past while the
		// model is still listed means that a request runs; moving from sample to sample means work in between.
		for _, m := range models {
			name, _ := at(m, "name")
			text, _ := at(m, "expires_at")
			s, _ := text.(string)
			expires, err := time.Parse(time.RFC3339Nano, s)
			switch {
			case err != nil:
				t.isUnknown("expires_at of %v is missing", name)
			case !expires.After(time.Now()):
				t.isBusy("a request on a model runs longer than its keep-alive")
			default:
				id, _ := name.(string)
				t.counters["expires_at of "+plain(id)] = float64(expires.UnixMilli())
			}
		}
	},
	// The scheduler waits until no request uses the model: unloading never aborts a request, killing would, and its app
	// starts a killed server again immediately.
	unload: func(l *look, m record.Model) error {
		return l.done(unloadPatience, "/api/generate", map[string]any{"model": m.ID, "keep_alive": 0})
	},
	load: func(l *look, m record.Model) error {
		return l.done(loadPatience, "/api/generate", ollamaLoad(m))
	},
}

// ollamaLoad asks for the model without a prompt, with the window that it had. The server does not say how long it
// stays loaded: a model that expires in years was loaded for good, all others get the server's default.
func ollamaLoad(m record.Model) map[string]any {
	body := map[string]any{"model": m.ID}
	var s struct {
		ExpiresAt     time.Time `json:"expires_at"`
		ContextLength int       `json:"context_length"`
	}
	if json.Unmarshal(m.Settings, &s) != nil {
		return body
	}
	if s.ExpiresAt.Year() > time.Now().Year()+10 {
		body["keep_alive"] = -1
	}
	if s.ContextLength > 0 {
		body["options"] = map[string]any{"num_ctx": s.ContextLength}
	}
	return body
}
