package neighbor

import "syscall"

var vllmMLX = kind{
	id: "vllm-mlx", title: "vllm-mlx", ports: []int{8000},
	runs: func(c command) bool {
		return c.named("vllm-mlx", "vllm_mlx") && c.verb("serve") || c.module("vllm_mlx.server", "vllm_mlx.cli",
			"vllm_mlx")
	},
	answers: func(l *look) bool {
		r := l.get("/health")
		status, _ := r.text("status")
		_, list := r.list("available_models")
		return r.status == 200 && (status == "healthy" || status == "unhealthy") && list && r.has("model_loaded")
	},
	models: healthModel,
	idle: func(l *look, t *sample) {
		r := l.get("/v1/status")
		if !t.asked(r, "/v1/status") {
			return
		}
		if r.has("model_manager") {
			t.isUnknown("with its model manager, /v1/status has no numbers of running requests")
			return
		}
		t.zero(r, "num_running") // `status` is "running" also when idle
		t.zero(r, "num_waiting")
		t.counter(r, "total_requests_processed")
	},
	signal: syscall.SIGTERM,
}
