package neighbor

import (
	"syscall"

	"slipway/installer/neighbor/record"
)

var mtplx = kind{
	id: "mtplx", title: "MTPLX", ports: []int{8000, 18083, 18084, 18085},
	runs: func(c command) bool {
		return c.named("mtplx") && c.verb("serve", "start", "quickstart", "supervise") ||
			c.module("mtplx.server.openai", "mtplx")
	},
	answers: func(l *look) bool {
		r := l.get("/health")
		ok, _ := r.flag("ok")
		_, model := r.text("model")
		return r.status == 200 && ok && r.object("startup") && model
	},
	claims: func(l *look) (int, bool) {
		n, ok := l.get("/health").number("startup", "pid")
		return int(n), ok
	},
	models: func(l *look) ([]record.Model, bool) {
		r := l.get("/health")
		id, ok := r.text("model")
		path, _ := r.text("model_path")
		if !ok || id == "" {
			return nil, ok
		}
		return []record.Model{{ID: id, Path: path}}, true
	},
	idle: func(l *look, t *sample) {
		r := l.get("/health")
		if !t.asked(r, "/health") {
			return
		}
		t.zero(r, "active_requests")
		t.zero(r, "foreground_active")
		t.zero(r, "dashboard_active_requests")
		t.zero(r, "scheduler", "active_requests")
		t.zero(r, "scheduler", "telemetry", "foreground_pending")
		t.zero(r, "scheduler", "telemetry", "idle_pending")
		// The GPU still works after the reply: active_kind is then idle_postcommit, with no request counted anywhere.
		switch kind, ok := r.at("scheduler", "telemetry", "active_kind"); {
		case !ok:
			t.isUnknown("scheduler.telemetry.active_kind is missing")
		case kind != nil:
			t.isBusy("scheduler works on %v", kind)
		}
		switch released, ok := r.flag("parent_runtime_released_for_aime"); {
		case ok && released:
			t.isBusy("a benchmark owns the GPU")
		}
		// null until the first request; less than 30 s may be a pause in a conversation.
		switch seconds, ok := r.at("idle_seconds"); {
		case !ok:
			t.isUnknown("idle_seconds is missing")
		case seconds != nil:
			n, ok := number(seconds)
			switch {
			case !ok:
				t.isUnknown("idle_seconds is no number")
			case n < 30:
				t.isBusy("its last request ended %.0f s ago, 30 are asked for", n)
			default:
				t.idleSeconds = &n
			}
		}
		// A server that has answered a request and rested since has warmed up, whatever shape that field has.
		completed, _ := r.number("requests_completed")
		if _, rested := r.number("idle_seconds"); !warm(r) && !(rested && completed > 0) {
			t.isUnknown("warmup has not finished")
		}
		t.counter(r, "requests_completed")
		t.counter(r, "requests_cancelled")
	},
	refuse: func(l *look, c command) string {
		r := l.get("/health")
		if id, _ := r.at("startup", "launch_id"); id != nil {
			return "it was started by MTPLX.app, which slipway cannot ask to start it again: stop it in the app, " +
				"and press play there afterwards"
		}
		if c.verb("supervise") {
			return "it is the front door of mtplx supervise with a process a model behind it: end it where it " +
				"was started"
		}
		return ""
	},
	signal: syscall.SIGTERM, // not `mtplx stop`, which sends SIGKILL after 10 s
}

// warm reads `warmup`, whose shape differs between versions: a flag, a word, or an object with one of these.
func warm(r reply) bool {
	value, ok := r.at("warmup")
	if !ok {
		value, _ = r.at("startup", "warmup")
	}
	if object, is := value.(map[string]any); is {
		for _, key := range []string{"ok", "done", "finished"} {
			if done, is := object[key].(bool); is {
				return done
			}
		}
		value = object["status"]
	}
	switch v := value.(type) {
	case bool:
		return v
	case string:
		return v == "ok" || v == "done" || v == "finished" || v == "complete" || v == "completed" || v == "disabled" ||
			v == "skipped"
	}
	return false
}
