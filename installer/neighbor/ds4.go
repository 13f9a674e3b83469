package neighbor

import (
	"syscall"

	"slipway/installer/neighbor/record"
)

var ds4 = kind{
	id: "ds4", title: "ds4-server", ports: []int{8000},
	runs: func(c command) bool { return c.named("ds4-server") },
	answers: func(l *look) bool {
		r := l.get("/v1/models")
		return r.status == 200 && r.ownedBy() == "ds4.c" && r.header.Get("Server") == ""
	},
	models: func(l *look) ([]record.Model, bool) {
		r := l.get("/v1/models")
		ids := r.listed()
		return modelsOf(ids...), r.status == 200 && len(ids) > 0
	},
	// No endpoint says it. The handler keeps its socket until the job is done, also when the client has left (it
	// continues to prefill): a process whose only socket is its listener has nothing to do.
	idle:         func(*look, *sample) {},
	exactSockets: true,
	signal:       syscall.SIGTERM, // clean; may write its KV checkpoint for some seconds
	needsFolder:  true,            // metal/*.metal is found relative to it
}
