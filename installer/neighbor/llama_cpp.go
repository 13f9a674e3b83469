package neighbor

import (
	"fmt"
	"path"
	"strings"
	"syscall"

	"slipway/installer/neighbor/record"
)

var llamaCPP = kind{
	id: "llama.cpp", title: "llama-server", ports: []int{8080},
	runs: func(c command) bool { return c.named("llama-server", "llamafile") },
	answers: func(l *look) bool {
		r := l.get("/health")
		return (r.status == 200 || r.status == 503) && r.header.Get("Server") == "llama.cpp"
	},
	models: func(l *look) ([]record.Model, bool) {
		r := l.get("/v1/models")
		if r.status != 200 || r.ownedBy() != "llamacpp" {
			return nil, false
		}
		if llamaRouter(l) {
			return nil, true // it loads a model when one is asked for: it is complete without
		}
		models := modelsOf(r.listed()...)
		if file, ok := l.get("/props").text("model_path"); ok && len(models) == 1 {
			models[0].Path = file
		}
		return models, true
	},
	idle: llamaIdle,
	refuse: func(_ *look, c command) string {
		if strings.Contains(c.exe, "/.lmstudio/") || strings.Contains(path.Dir(c.exe), "LM Studio") {
			return "it is LM Studio's own copy of llama-server: unload the model in LM Studio"
		}
		return ""
	},
	signal: syscall.SIGTERM,
}

// llamaIdle asks /props first. A server that sleeps (--sleep-idle-seconds) wakes and loads its model again when /slots
// or /metrics is asked, and answers /health, /props and /v1/models without waking.
func llamaIdle(l *look, t *sample) {
	if r := l.get("/health"); r.status == 503 {
		t.isBusy("it is loading its model")
		return
	}
	props := l.get("/props")
	if !t.asked(props, "/props") {
		return
	}
	if llamaRouter(l) {
		llamaRouterIdle(l, t)
		return
	}
	if props.has("is_sleeping") { // versions that cannot sleep do not have it
		sleeping, ok := props.flag("is_sleeping")
		if !ok {
			t.isUnknown("is_sleeping is no flag")
			return
		}
		t.counters["is_sleeping"] = map[bool]float64{true: 1}[sleeping]
		if sleeping {
			return
		}
	}
	r := l.get("/slots")
	if r.status == 501 {
		llamaMetrics(l, t)
		return
	}
	if !t.asked(r, "/slots") {
		return
	}
	slots, ok := r.list()
	if !ok || len(slots) == 0 {
		t.isUnknown("/slots lists no slot")
		return
	}
	for i, slot := range slots {
		processing, _ := at(slot, "is_processing")
		switch on, ok := processing.(bool); {
		case !ok:
			t.isUnknown("slot %d does not say whether it works", i)
		case on:
			t.isBusy("slot %d works", i)
		}
		if task, ok := at(slot, "id_task"); ok {
			if n, ok := number(task); ok {
				t.counters[fmt.Sprintf("slot %d id_task", i)] = n
			}
		}
	}
}

// llamaRouter reports whether the server has a process for each model and computes nothing itself.
func llamaRouter(l *look) bool {
	role, _ := l.get("/props").text("role")
	return role == "router"
}

// llamaRouterIdle asks each child at its own port: a question through the router could load a model or count as its
// use. Every model that the router calls loaded needs a child that answers.
func llamaRouterIdle(l *look, t *sample) {
	list, ok := l.get("/v1/models").list("data")
	if !ok {
		t.isUnknown("/v1/models lists no models")
		return
	}
	loaded := 0
	for _, model := range list {
		status, _ := at(model, "status", "value")
		switch status {
		case "unloaded":
		case "loaded", "sleeping":
			loaded++
		case "loading":
			t.isBusy("it is loading a model")
		default:
			t.isUnknown("/v1/models does not say whether a model is loaded")
		}
	}
	ports, err := l.children()
	if err != nil {
		t.isUnknown("its children cannot be read: %s", errText(err))
		return
	}
	if len(ports) < loaded {
		t.isUnknown("%d models are loaded, and only %d of its children can be asked", loaded, len(ports))
	}
	for _, port := range ports {
		one := sample{counters: map[string]float64{}}
		child := *l
		child.base, child.port, child.replies = baseURL(loopback, port), port, map[string]reply{}
		llamaIdle(&child, &one)
		for _, why := range one.busy {
			t.isBusy("its child on port %d: %s", port, why)
		}
		for _, why := range one.unknown {
			t.isUnknown("its child on port %d: %s", port, why)
		}
		for name, n := range one.counters {
			t.counters[fmt.Sprintf("child %d %s", port, name)] = n
		}
	}
}

// llamaMetrics is the way where slots are off (501): two gauges of /metrics, there only with --metrics.
func llamaMetrics(l *look, t *sample) {
	r := l.get("/metrics")
	if r.status != 200 {
		t.isUnknown("/slots is off and /metrics answered %d", r.status)
		return
	}
	for _, gauge := range []string{"llamacpp:requests_processing", "llamacpp:requests_deferred"} {
		switch value, ok := prometheus(r.body, gauge); {
		case !ok:
			t.isUnknown("%s is missing", gauge)
		case value != "0":
			t.isBusy("%s is %s", gauge, value)
		}
	}
}

// prometheus finds an unlabelled sample.
func prometheus(body []byte, name string) (string, bool) {
	for line := range strings.Lines(string(body)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			return fields[1], true
		}
	}
	return "", false
}
