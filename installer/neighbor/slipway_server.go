package neighbor

import (
	"syscall"

	"slipway/installer/neighbor/record"
)

// slipwayServer is slipway's own server from another home or an older version: a neighbour like any other.
var slipwayServer = kind{
	id: "slipway", title: "slipway-server", ports: []int{8008},
	runs: func(c command) bool { return c.named("slipway-server") && c.verb("serve") },
	answers: func(l *look) bool {
		r := l.get("/health")
		product, _ := r.text("product")
		return r.status == 200 && product == "slipway"
	},
	claims: func(l *look) (int, bool) {
		n, ok := l.get("/health").number("pid")
		return int(n), ok
	},
	models: func(l *look) ([]record.Model, bool) {
		model, ok := l.get("/health").text("model")
		return modelsOf(model), ok
	},
	idle: func(l *look, t *sample) {
		r := l.get("/health")
		if !t.asked(r, "/health") {
			return
		}
		t.off(r, "busy")
		t.off(r, "background")
		t.off(r, "draining")
		t.zero(r, "active")
		t.zero(r, "queued")
	},
	signal: syscall.SIGTERM,
}
