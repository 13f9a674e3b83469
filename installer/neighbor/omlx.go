package neighbor

import (
	"syscall"

	"slipway/installer/neighbor/record"
)

var omlx = kind{
	id: "omlx", title: "oMLX", ports: []int{8000},
	runs: func(c command) bool {
		return c.named("omlx-server") || c.named("omlx", "omlx-cli") && c.verb("serve") ||
			c.module("omlx", "omlx.cli", "omlx.server")
	},
	answers: func(l *look) bool {
		r := l.get("/health")
		status, _ := r.text("status")
		return r.status == 200 && status == "healthy" && r.has("engine_pool") && !r.has("model_loaded")
	},
	models: func(l *look) ([]record.Model, bool) {
		loaded, ok := l.get("/api/status").list("loaded_models")
		var models []record.Model
		for _, m := range loaded {
			id, is := m.(string)
			if !is {
				return nil, false
			}
			models = append(models, record.Model{ID: id})
		}
		return models, ok
	},
	idle: func(l *look, t *sample) {
		r := l.get("/api/status")
		if !t.asked(r, "/api/status") {
			return
		}
		// Only batched engines are counted here (not DFlash, ANE, diffusion): sockets and CPU time show the rest.
		t.zero(r, "active_requests")
		t.zero(r, "waiting_requests")
		t.zero(r, "models_loading")
		t.counter(r, "total_requests")
		t.counter(r, "total_prompt_tokens")
		t.counter(r, "total_completion_tokens")
	},
	signal: syscall.SIGTERM,
	socket: "Library/Application Support/oMLX/control.sock",
}
