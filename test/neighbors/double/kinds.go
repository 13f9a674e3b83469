package double

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type object = map[string]any

// served makes /v1/models.
func served(owner string) func(*Server) Reply {
	return func(s *Server) Reply {
		item := object{"id": s.Model, "object": "model", "created": s.Started.Unix()}
		if owner != "" {
			item["owned_by"] = owner
		}
		return Reply{JSON: object{"object": "list", "data": []any{item}}}
	}
}

// MTPLX answers like MTPLX 2.3.0 to about 2.10.
var MTPLX = Kind{Name: "mtplx", Header: map[string]string{"Server": "uvicorn"}, Paths: map[string]func(*Server) Reply{
	"/health": func(s *Server) Reply {
		var activeKind, launch any
		if s.Working() {
			activeKind = "decode"
		}
		if s.mode() == "postcommit" {
			activeKind = "idle_postcommit"
		}
		if s.mode() == "app" {
			launch = "6f1c"
		}
		idle := any(41.5)
		switch s.mode() {
		case "fresh", "warming":
			idle = nil
		case "pausing":
			idle = 3.0
		}
		var warmup any = object{"ok": true}
		switch s.mode() {
		case "warming":
			warmup = object{"status": "running"}
		case "odd-warmup":
			warmup = nil
		}
		pid := os.Getpid()
		if s.mode() == "supervised" {
			pid++
		}
		return Reply{JSON: object{
			"ok": true, "model": s.Model, "model_path": "/models/" + s.Model, "generation_mode": "mtp",
			"startup": object{"launch_id": launch, "pid": pid, "app_parent_pid": nil,
				"started_at": float64(s.Started.Unix()), "model_id": s.Model,
				"api_key_required": false, "api_key_source": nil, "paged_kv_quantization": nil, "backend": "mlx",
				"model_controls": object{}},
			"depth": 1, "profile": object{"name": "sustained"}, "context_window": 262144, "max_response_tokens": 32768,
			"api_key_required": false,
			"warmup":           warmup, "foreground_active": s.active(), "dashboard_active_requests": s.active(),
			"active_requests": s.active(),
			"scheduler": object{"mode": "serial", "active_lane": nil, "active_requests": s.active(),
				"telemetry": object{"foreground_pending": 0, "idle_pending": 0, "active_kind": activeKind,
					"active_run_s": 0.0}},
			"session_bank": object{"entries": 2}, "ssd_session_cache": object{"enabled": true},
			"last_request_started_at": float64(s.Started.Unix()),
			"requests_completed":      s.completed(), "requests_cancelled": 0,
			"last_request_at": float64(s.Started.Unix()), "idle_seconds": idle, "load_time_s": 5.1,
			"metal_memory_caps": object{}, "mlx_cache_limit": 1 << 30, "mlx_runtime": object{}, "machine": object{
				"chip": "Apple M4 Max"},
		}}
	},
	"/v1/models": served("mtplx"),
}}

// OMLX answers like oMLX 0.4.
var OMLX = Kind{Name: "omlx", Header: map[string]string{"Server": "uvicorn"}, Public: []string{"/health"},
	Paths: map[string]func(*Server) Reply{
		"/health": func(s *Server) Reply {
			return Reply{JSON: object{"status": "healthy", "default_model": s.Model,
				"engine_pool": object{"model_count": 3, "loaded_count": 1, "final_ceiling": 30 << 30,
					"current_model_memory": 17 << 30}, "mcp": nil}}
		},
		"/api/status": func(s *Server) Reply {
			return Reply{JSON: object{"status": "ok", "version": "0.4.5", "uptime_seconds": 512.0,
				"models_discovered": 3, "models_loaded": 1, "models_loading": 0,
				"default_model": s.Model, "loaded_models": []any{s.Model}, "total_requests": s.completed(),
				"active_requests": s.active(), "waiting_requests": 0,
				"total_prompt_tokens": 1000, "total_completion_tokens": 200, "total_cached_tokens": 300,
				"cache_efficiency": 0.3, "avg_prefill_tps": 500.0,
				"avg_generation_tps": 30.0, "model_memory_used": 17 << 30, "model_memory_max": 30 << 30,
				"model_memory_used_formatted": "17.0GB", "model_memory_max_formatted": "30.0GB"}}
		},
		"/v1/models": served("omlx"),
	}}

func rapid(owner string) Kind {
	return Kind{Name: owner, Header: map[string]string{"Server": "uvicorn"}, Public: []string{
		"/health", "/livez", "/healthz"}, Paths: map[string]func(*Server) Reply{
		"/": func(*Server) Reply { return Reply{JSON: object{"status": "ok"}} },
		"/health": func(s *Server) Reply {
			return Reply{JSON: object{"status": "healthy", "ready": true, "model_loaded": true, "model_name": s.Model,
				"model_type": "llm", "engine_type": "batched", "mcp": nil}}
		},
		"/livez": func(*Server) Reply { return Reply{JSON: object{"status": "alive"}} },
		"/healthz": func(s *Server) Reply {
			if s.mode() == "healthz-draining" {
				return Reply{Status: 503, JSON: object{"status": "draining", "model": s.Model}}
			}
			return Reply{JSON: object{"status": "ok"}}
		},
		"/v1/status": func(s *Server) Reply {
			return Reply{JSON: object{"status": "generating", "model": s.Model, "uptime_s": 99.0,
				"steps_executed": 5000, "num_running": s.active(), "num_waiting": 0,
				"total_requests_processed": s.completed(), "metal": object{"active_memory_gb": 17.0}, "cache": object{},
				"requests": []any{}}}
		},
		"/v1/models": served(owner),
	}}
}

// RapidMLX answers like Rapid-MLX 0.12, QMLX (0.15) in the same shapes.
var RapidMLX, QMLX = rapid("rapid-mlx"), rapid("qmlx")

// VLLMMLX answers like vllm-mlx 0.4.1.
var VLLMMLX = Kind{Name: "vllm-mlx", Header: map[string]string{"Server": "uvicorn"}, Public: []string{"/health"},
	Paths: map[string]func(*Server) Reply{
		"/health": func(s *Server) Reply {
			return Reply{JSON: object{"status": "healthy", "model_loaded": true, "model_name": s.Model,
				"available_models": []any{s.Model}, "model_type": "llm", "engine_type": "simple", "mcp": nil}}
		},
		"/v1/status": func(s *Server) Reply {
			if s.mode() == "manager" {
				return Reply{JSON: object{"status": "running", "model_manager": object{
					"memory_budget_gb": 30.0, "idle_unload_seconds": 600, "models": []any{}}}}
			}
			return Reply{JSON: object{"status": "running", "num_running": s.active(), "num_waiting": 0,
				"total_requests_processed": s.completed()}}
		},
		"/v1/models": served("vllm-mlx"),
	}}

// LMStudio answers like LM Studio's server. The file "loaded" lists what is loaded.
var LMStudio = Kind{Name: "llmster", Public: []string{"/lmstudio-greeting", "/double/ps", "/double/load"},
	Paths: map[string]func(*Server) Reply{
		"/lmstudio-greeting": func(*Server) Reply { return Reply{JSON: object{"lmstudio": true}} },
		"/api/v1/models": func(s *Server) Reply {
			instances := []any{}
			for _, id := range s.loaded(s.Model) {
				instances = append(instances, object{"id": id, "config": object{"context_length": 8192, "parallel": 4}})
			}
			return Reply{JSON: object{
				"models": []any{object{"key": s.Model, "type": "llm", "loaded_instances": instances}}}}
		},
		"/api/v0/models": func(s *Server) Reply {
			state := "not-loaded"
			if len(s.loaded(s.Model)) > 0 {
				state = "loaded"
			}
			return Reply{JSON: object{
				"object": "list", "data": []any{
					object{"id": s.Model, "state": state, "arch": "qwen3", "compatibility_type": "mlx",
						"quantization": "4bit"}}}}
		},
		"/double/ps": func(s *Server) Reply {
			list := []any{}
			for _, id := range s.loaded(s.Model) {
				status, queued := "idle", 0
				if s.Working() {
					status, queued = "generating", 1
				}
				list = append(list, object{"identifier": id, "modelKey": s.Model, "status": status, "queued": queued,
					"parallel": 4})
			}
			return Reply{JSON: list}
		},
	}, Posts: map[string]func(*Server) Reply{
		"/api/v1/models/unload": func(s *Server) Reply {
			var body struct {
				ID string `json:"instance_id"`
			}
			json.Unmarshal(s.body, &body)
			return s.unload(body.ID, s.Model, object{"instance_id": body.ID})
		},
		"/double/load": func(s *Server) Reply {
			var body struct {
				Identifier, Key, Parallel string
				Context                   string `json:"context-length"`
			}
			json.Unmarshal(s.body, &body)
			s.setLoaded(append(s.loaded(s.Model), body.Identifier))
			s.log("load %s as %s with %s tokens, %s at once", body.Key, body.Identifier, body.Context, body.Parallel)
			return Reply{JSON: object{}}
		},
	}}

// loaded are the models in memory: what the file says, or first if there is none yet.
func (s *Server) loaded(first string) []string {
	b, err := os.ReadFile(filepath.Join(s.Folder, "loaded"))
	if err != nil {
		return []string{first}
	}
	var ids []string
	json.Unmarshal(b, &ids)
	return ids
}

func (s *Server) setLoaded(ids []string) {
	b, _ := json.Marshal(append([]string{}, ids...))
	os.WriteFile(filepath.Join(s.Folder, "loaded"), b, 0o600)
}

func (s *Server) unload(id, first string, answer object) Reply {
	var rest []string
	found := false
	for _, have := range s.loaded(first) {
		if have == id {
			found = true
		} else {
			rest = append(rest, have)
		}
	}
	if !found {
		return Reply{Status: 404, JSON: object{"error": "not loaded"}}
	}
	s.setLoaded(rest)
	s.log("unload %s", id)
	return Reply{JSON: answer}
}

// Ollama answers like ollama of August 2026.
var Ollama = Kind{Name: "ollama", Paths: map[string]func(*Server) Reply{
	"/":            func(*Server) Reply { return Reply{Text: "Ollama is running"} },
	"/api/version": func(*Server) Reply { return Reply{JSON: object{"version": "0.30.3"}} },
	"/api/ps": func(s *Server) Reply {
		models := []any{}
		for _, id := range s.loaded(s.Model) {
			expires := s.Started.Add(time.Hour)
			switch {
			case s.Working():
				expires = s.Started.Add(-time.Minute) // in the past and still listed: a request runs
			case s.mode() == "moving":
				expires = time.Now().Add(time.Hour)
			}
			models = append(models, object{"name": id, "model": id, "size": 17 << 30, "digest": "abc",
				"details":    object{"family": "qwen3"},
				"expires_at": expires.Format(time.RFC3339Nano), "size_vram": 17 << 30, "context_length": 8192})
		}
		return Reply{JSON: object{"models": models}}
	},
	"/v1/models": served("library"),
}, Posts: map[string]func(*Server) Reply{
	"/api/generate": func(s *Server) Reply {
		var body struct {
			Model     string         `json:"model"`
			KeepAlive any            `json:"keep_alive"`
			Options   map[string]int `json:"options"`
		}
		json.Unmarshal(s.body, &body)
		if n, ok := body.KeepAlive.(float64); ok && n == 0 {
			return s.unload(body.Model, s.Model, object{"model": body.Model, "done": true, "done_reason": "unload"})
		}
		s.setLoaded(append(s.loaded(s.Model), body.Model))
		s.log("load %s with %d tokens", body.Model, body.Options["num_ctx"])
		return Reply{JSON: object{"model": body.Model, "done": true, "done_reason": "load"}}
	},
}}

// LlamaServer answers like llama.cpp's server of August 2026.
var LlamaServer = Kind{Name: "llama-server", Header: map[string]string{"Server": "llama.cpp"}, Public: []string{
	"/health", "/v1/health", "/models", "/v1/models", "/"},
	Paths: map[string]func(*Server) Reply{
		"/health": func(s *Server) Reply {
			if s.mode() == "loading" {
				return Reply{Status: 503, JSON: object{
					"error": object{"message": "Loading model", "type": "unavailable_error", "code": 503}}}
			}
			return Reply{JSON: object{"status": "ok"}}
		},
		"/props": func(s *Server) Reply {
			if s.router() {
				return Reply{JSON: object{"role": "router", "max_instances": 4, "model_path": "none",
					"build_info": "b7500"}}
			}
			return Reply{JSON: object{"total_slots": 2, "model_path": "/models/" + s.Model + ".gguf",
				"build_info":  "b6000",
				"is_sleeping": s.mode() == "sleeping", "default_generation_settings": object{}}}
		},
		"/slots": func(s *Server) Reply {
			if s.mode() == "sleeping" {
				s.log("woken by /slots")
			}
			if s.router() {
				return Reply{Status: 400, JSON: object{
					"error": object{"code": 400, "message": "model name is missing"}}}
			}
			if s.mode() == "no-slots" {
				return Reply{Status: 501, JSON: object{
					"error": object{"code": 501, "message": "This server does not support slots endpoint.",
						"type": "not_supported_error"}}}
			}
			return Reply{JSON: []any{object{"id": 0, "id_task": s.completed(), "is_processing": s.Working()},
				object{"id": 1, "id_task": -1, "is_processing": false}}}
		},
		"/metrics": func(s *Server) Reply {
			if s.mode() == "no-slots" {
				return Reply{Text: "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing " +
					"0\nllamacpp:requests_deferred 0\n"}
			}
			return Reply{Status: 501, JSON: object{
				"error": object{"code": 501, "message": "metrics are off", "type": "not_supported_error"}}}
		},
		"/v1/models": func(s *Server) Reply {
			if !s.router() {
				return served("llamacpp")(s)
			}
			item := func(id, status string) object {
				return object{"id": id, "object": "model", "owned_by": "llamacpp", "status": object{"value": status}}
			}
			list := []any{item(s.Model, "loaded"), item("another", "unloaded")}
			switch s.mode() {
			case "router-two":
				list = append(list, item("third", "loaded"))
			case "router-loading":
				list = append(list, item("third", "loading"))
			}
			return Reply{JSON: object{"object": "list", "data": list}}
		},
		"404": func(*Server) Reply {
			return Reply{Status: 404, JSON: object{
				"error": object{"message": "File Not Found", "type": "not_found_error", "code": 404}}}
		},
	}}

// router: llama-server without a model of its own, with a child for each loaded one.
func (s *Server) router() bool { return strings.HasPrefix(s.mode(), "router") }

func python(name string) Kind {
	return Kind{Name: name, Header: map[string]string{"Server": "BaseHTTP/0.6 Python/3.12.4"},
		Paths: map[string]func(*Server) Reply{
			"/health":    func(*Server) Reply { return Reply{Text: `{"status": "ok"}`} },
			"/v1/models": served(""),
			"404":        func(*Server) Reply { return Reply{Status: 404, Text: "Not Found"} },
		}}
}

// MLXLM and DFlash answer like mlx_lm.server and its wrapper.
var MLXLM, DFlash = python("mlx_lm.server"), python("dflash-serve")

// DS4 answers like ds4-server: no health, no Server header, the connection closes.
var DS4 = Kind{Name: "ds4-server", SocketWhileBusy: true, Header: map[string]string{"Connection": "close"},
	Paths: map[string]func(*Server) Reply{
		"/v1/models": func(s *Server) Reply {
			return Reply{JSON: object{
				"object": "list", "data": []any{
					object{"id": "deepseek-v4-flash", "object": "model", "created": 1767225600, "owned_by": "ds4.c",
						"name": "DeepSeek V4 Flash", "context_length": 65536, "top_provider": object{},
						"supported_parameters": []any{}}}}}
		},
		"404": func(*Server) Reply { return Reply{Status: 404, JSON: object{"error": object{"message": "not found"}}} },
	}}

// Kapitsa answers in an unknown way; only its name is known.
var Kapitsa = Kind{Name: "kapitsa", Paths: map[string]func(*Server) Reply{
	"/v1": func(*Server) Reply { return Reply{JSON: object{"ok": true}} }}}

// Slipway answers like our own server, which speaks other servers' APIs beside its /health.
var Slipway = Kind{Name: "slipway-server", Paths: map[string]func(*Server) Reply{
	"/health": func(s *Server) Reply {
		return Reply{JSON: object{"product": "slipway", "version": "0.0.1", "pid": os.Getpid(),
			"started": s.Started.Format(time.RFC3339), "launch_id": "old",
			"model": s.Model, "ready": true, "busy": s.Working(), "active": s.active(), "queued": 0,
			"background": s.mode() == "background", "draining": s.mode() == "says-draining"}}
	},
	"/v1/models":   served("slipway"),
	"/api/version": func(*Server) Reply { return Reply{JSON: object{"version": "0.12.6", "server": "slipway"}} },
	"/api/tags": func(s *Server) Reply {
		return Reply{JSON: object{"models": []any{object{"name": s.Model, "model": s.Model}}}}
	},
}}

// Webapp is a web server that happens to have a /health.
var Webapp = Kind{Name: "webapp", Paths: map[string]func(*Server) Reply{
	"/health": func(*Server) Reply { return Reply{JSON: object{"status": "ok"}} },
	"/":       func(*Server) Reply { return Reply{Text: "<h1>hello</h1>"} },
}}
