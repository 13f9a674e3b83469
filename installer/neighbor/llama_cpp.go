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
		models := modelsOf(r.listed()...)
		if file, ok := l.get("/props").text("model_path"); ok && len(models) == 1 {
			models[0].Path = file
		}
		return models, true
	},
	idle: func(l *look, t *sample) {
		if r := l.get("/health"); r.status == 503 {
			t.isBusy("it is loading its model")
			return
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
	},
	refuse: func(_ *look, c command) string {
		if strings.Contains(c.exe, "/.lmstudio/") || strings.Contains(path.Dir(c.exe), "LM Studio") {
			return "it is LM Studio's own copy of llama-server: unload the model in LM Studio"
		}
		return ""
	},
	signal: syscall.SIGTERM,
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
