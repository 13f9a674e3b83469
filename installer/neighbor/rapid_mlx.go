package neighbor

import (
	"syscall"

	"slipway/installer/neighbor/record"
)

// Rapid-MLX and its fork qMLX give the same answers; only the command line differs.
var rapidMLX = kind{
	id: "rapid-mlx", title: "Rapid-MLX", ports: []int{8000, 8001, 8002, 8003, 8004, 8005, 8006, 8007, 8009},
	runs: func(c command) bool {
		return (c.named("rapid-mlx", "rapid_mlx") || c.module("rapid_mlx", "rapid_mlx.cli", "vllm_mlx",
			"vllm_mlx.cli")) && c.verb("serve")
	},
	answers: rapidAnswers, models: healthModel, idle: rapidIdle,
	signal: syscall.SIGTERM,
}

var qmlx = kind{
	id: "qmlx", title: "qMLX", ports: []int{8000, 8095},
	runs:    func(c command) bool { return c.named("qmlx") && c.verb("serve") || c.module("qmlx") },
	answers: rapidAnswers, models: healthModel, idle: rapidIdle,
	signal: syscall.SIGTERM,
}

func rapidAnswers(l *look) bool {
	r := l.get("/health")
	status, _ := r.text("status")
	_, ready := r.flag("ready")
	_, loaded := r.flag("model_loaded")
	return r.status == 200 && status == "healthy" && ready && loaded && !r.has("available_models")
}

// healthModel reads model_loaded and model_name of /health.
func healthModel(l *look) ([]record.Model, bool) {
	r := l.get("/health")
	loaded, ok := r.flag("model_loaded")
	name, named := r.text("model_name")
	if !ok || loaded && !named {
		return nil, false
	}
	if !loaded {
		return nil, true
	}
	return modelsOf(name), true
}

func rapidIdle(l *look, t *sample) {
	// /healthz answers in constant time and says when the server drains; older versions have none.
	if r := l.get("/healthz"); r.status == 503 {
		t.isBusy("it is draining")
	}
	r := l.get("/v1/status")
	if !t.asked(r, "/v1/status") {
		return
	}
	// Not `status`: in older versions and in qMLX that is the engine loop's flag, always "generating".
	t.zero(r, "num_running")
	t.zero(r, "num_waiting")
	t.counter(r, "total_requests_processed")
}
