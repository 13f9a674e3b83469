package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway/engine/pass"
)

const ollamaPath = "/api/chat"

var ollamaClient = speaker{
	name: "ollama", path: ollamaPath,
	user: func(text string) any { return object{"role": "user", "content": text} },
	body: func(q ask) object {
		body := object{"model": "pocket:latest", "options": object{"num_predict": q.maxTokens}, "think": q.thinking,
			"stream": false, "messages": messagesOf(object{"role": "user", "content": "Hi"}, q)}
		if q.tools {
			body["tools"] = toolList(func(name string, parameters any) object {
				return object{"type": "function", "function": object{"name": name, "parameters": parameters}}
			})
		}
		return q.onto(body)
	},
	whole:    func(t *testing.T, raw []byte) heard { return joinLines(t, raw) },
	streamed: func(t *testing.T, raw []byte) heard { return joinLines(t, raw) },
	back: func(h heard) []any {
		turns := []any{h.raw}
		for _, c := range h.calls {
			turns = append(turns, object{"role": "tool", "tool_name": c.Function.Name, "content": "done"})
		}
		return turns
	},
}

type ollamaPiece struct {
	Model   string
	Message ollamaMessage
	Done    bool
	Reason  string `json:"done_reason"`
	Prompt  int    `json:"prompt_eval_count"`
	Count   int    `json:"eval_count"`
	Slipway struct{ Notice string }
	Error   string
}

type ollamaMessage struct {
	Role     string       `json:"role"`
	Content  string       `json:"content"`
	Thinking string       `json:"thinking,omitempty"`
	Calls    []ollamaCall `json:"tool_calls,omitempty"`
}

type ollamaCall struct {
	ID       string `json:"id"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// joinLines puts a reply together from its lines, of which a whole one has one.
func joinLines(t *testing.T, raw []byte) (h heard) {
	t.Helper()
	m := ollamaMessage{Role: "assistant"}
	ended := false
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var p ollamaPiece
		unmarshal(t, []byte(line), &p)
		if ended || p.Model != "pocket" || p.Message.Role != "assistant" {
			t.Fatalf("line %s in %s", line, raw)
		}
		m.Content += p.Message.Content
		m.Thinking += p.Message.Thinking
		m.Calls = append(m.Calls, p.Message.Calls...)
		if ended = p.Done; ended {
			h.finish, h.notice, h.prompt, h.completion = p.Reason, p.Slipway.Notice, p.Prompt, p.Count
		}
	}
	if !ended {
		t.Fatalf("the reply does not end: %s", raw)
	}
	h.content, h.thinking, h.raw = m.Content, m.Thinking, m
	for i, c := range m.Calls {
		if c.Function.Index != i {
			t.Errorf("call %d has the index %d", i, c.Function.Index)
		}
		read := call{ID: c.ID}
		read.Function.Name, read.Function.Arguments = c.Function.Name, string(c.Function.Arguments)
		h.calls = append(h.calls, read)
	}
	return h
}

func TestOllamasClientsFindTheModel(t *testing.T) {
	s := start(t, setup{})
	var tags struct {
		Models []struct{ Name, Model, Digest string }
	}
	unmarshal(t, s.get(t, "/api/tags").body, &tags)
	if len(tags.Models) != 1 || tags.Models[0].Name != "pocket" || tags.Models[0].Digest == "" {
		t.Errorf("%+v", tags)
	}
	var shown struct {
		Capabilities []string
		Info         map[string]any `json:"model_info"`
	}
	for _, body := range []string{`{"model":"pocket"}`, `{"name":"pocket:latest","verbose":true}`} {
		unmarshal(t, s.post(t, "/api/show", body).body, &shown)
		family := fmt.Sprint(shown.Info["general.architecture"])
		if fmt.Sprint(shown.Capabilities) != "[completion tools thinking]" ||
			shown.Info[family+".context_length"] != 2048.0 {
			t.Errorf("%s: %+v", body, shown)
		}
	}
	var version struct{ Version, Server string }
	unmarshal(t, s.get(t, "/api/version").body, &version)
	if !strings.HasPrefix(version.Version, "0.") || version.Server != "slipway" {
		t.Errorf("%+v", version)
	}
	loaded := s.post(t, ollamaPath, `{"model":"pocket","messages":[],"keep_alive":"5m"}`)
	if !strings.Contains(string(loaded.body), `"done_reason":"load"`) || s.net.Passes() != 0 {
		t.Errorf("%s", loaded.body)
	}
}

// Who asks "/" must not take the server for Ollama, which says that it runs.
func TestServerDoesNotSayThatItIsOllama(t *testing.T) {
	s := start(t, setup{})
	if a := s.get(t, "/"); a.status != 404 || strings.Contains(string(a.body), "Ollama is running") {
		t.Errorf("%d: %s", a.status, a.body)
	}
	if a := s.get(t, "/health"); !strings.Contains(string(a.body), `"product":"slipway"`) {
		t.Errorf("%s", a.body)
	}
	text := func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }
	if a := s.post(t, ollamaPath, `{"model":"pocket","messages":[]}`, text); a.status != 415 {
		t.Errorf("a body that a web page can send: %d: %s", a.status, a.body)
	}
}

func TestOllamaMessagesMeanWhatTheySay(t *testing.T) {
	const head, hi = "<|endoftext|>", "<|im_start|>user\nHi<|im_end|>\n"
	const think, off = "<|im_start|>assistant\n<think>\n", "<|im_start|>assistant\n<think>\n\n</think>\n\n"
	user := `{"role":"user","content":"Hi"}`
	for _, test := range []struct{ name, members, want string }{
		{"text", `"messages":[` + user + `]`, head + hi + think},
		{"no thinking", `"messages":[` + user + `],"think":false`, head + hi + off},
		{"an effort", `"messages":[` + user + `],"think":"low"`, head + hi + think},
		{"system", `"messages":[{"role":"system","content":"Be brief."},` + user + `],"images":null`,
			head + "<|im_start|>system\nBe brief.<|im_end|>\n" + hi + think},
		{"a call", `"messages":[` + user + `,{"role":"assistant","content":"","thinking":"hmm","tool_calls":[{"function":` +
			`{"index":0,"name":"f","arguments":{"b":"c"}}}]},{"role":"tool","tool_name":"f","content":"ok"}]`,
			head + hi + "<|im_start|>assistant\n<think>\nhmm\n</think>\n\n<tool_call>\n<function=f>\n<parameter=b>\nc\n" +
				"</parameter>\n</function>\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nok\n" +
				"</tool_response><|im_end|>\n" + think},
		{"continued", `"messages":[` + user + `,{"role":"assistant","content":"So"}]`,
			head + hi + think + "\n</think>\n\nSo"},
		{"options", `"messages":[` + user + `],"keep_alive":-1,"options":{"num_ctx":4096,"temperature":0,"top_k":20,` +
			`"repeat_penalty":1.1,"seed":1,"num_predict":-1,"stop":["x"],"num_gpu":1,"mirostat":0}`, head + hi + think},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			if a := s.post(t, ollamaPath, `{"model":"pocket",`+test.members+`}`); a.status != 200 {
				t.Fatalf("status %d: %s", a.status, a.body)
			}
			if got := pocket().Tokenizer.Decode(*s.prompt.Load()); got != test.want {
				t.Errorf("prompt\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestOllamaRefusesInItsOwnForm(t *testing.T) {
	with := func(members string) string {
		return `{"model":"pocket","messages":[{"role":"user","content":"Hi"}]` + members + `}`
	}
	for _, test := range []struct {
		name, path, body, says string
		status                 int
	}{
		{"another model", ollamaPath, strings.Replace(with(""), "pocket", "llama3", 1), "pocket", 404},
		{"another model's details", "/api/show", `{"model":"llama3"}`, "pocket", 404},
		{"no model", ollamaPath, `{}`, "model", 400},
		{"image", ollamaPath, `{"model":"pocket","messages":[{"role":"user","content":"Hi","images":["AA=="]}]}`,
			"messages[0].images", 400},
		{"format", ollamaPath, with(`,"format":"xml"`), "format", 400},
		{"schema", ollamaPath, with(`,"format":{"not":{}}`), "format", 400},
		{"unknown option", ollamaPath, with(`,"options":{"dry":1}`), "options.dry", 400},
		{"sampler", ollamaPath, with(`,"options":{"mirostat":1}`), "options.mirostat", 400},
		{"temperature", ollamaPath, with(`,"options":{"temperature":9}`), "temperature", 400},
		{"no tokens", ollamaPath, with(`,"options":{"num_predict":0}`), "num_predict", 400},
		{"effort", ollamaPath, with(`,"think":"wildly"`), "think", 400},
		{"tool", ollamaPath, with(`,"tools":[{"type":"function","function":{"name":"two words"}}]`),
			"tools[0].function.name", 400},
		{"tool of nothing", ollamaPath, with(`,"tools":[{}]`), "tools", 400},
		{"role", ollamaPath, `{"model":"pocket","messages":[{"role":"wizard"}]}`, "messages[0].role", 400},
		{"too long", ollamaPath, strings.Replace(with(""), "Hi", strings.Repeat("word ", 3000), 1), "2048", 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := start(t, setup{}).post(t, test.path, test.body)
			var e map[string]string
			unmarshal(t, a.body, &e)
			if a.status != test.status || len(e) != 1 || !strings.Contains(e["error"], test.says) {
				t.Errorf("status %d: %s", a.status, a.body)
			}
		})
	}
}

func TestFailedLineDoesNotLookComplete(t *testing.T) {
	broken := setup{pass: func([]pass.Segment) error { return fmt.Errorf("page 7 is gone") }}
	a := start(t, broken).tell(t, ollamaClient, ask{maxTokens: 5, stream: true})
	lines := strings.Split(strings.TrimSpace(string(a.body)), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, `{"error":"`) || strings.Contains(last, "page 7") ||
		strings.Contains(string(a.body), `"done":true`) {
		t.Errorf("%s", a.body)
	}
}

func TestLinesKeepTheirClientAlive(t *testing.T) {
	open := make(chan struct{})
	s := start(t, setup{keepAlive: 5 * time.Millisecond, pass: func([]pass.Segment) error { <-open; return nil }})
	got := waited(t, s, ollamaPath, `{"model":"pocket","think":false,"messages":[{"role":"user","content":"Hi"}]}`,
		`"done":false`, open)
	if h := joinLines(t, got); h.content != "Hello!" {
		t.Errorf("%s", got)
	}
}

// A path that nothing is at says which APIs are spoken, and where.
func TestUnknownPathSaysWhatIsSpokenWhere(t *testing.T) {
	s := start(t, setup{})
	for _, path := range []string{"/", "/v1", "/v1/embeddings", "/api/generate", "/chat/completions"} {
		a := s.get(t, path)
		for _, spoken := range []string{"/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"} {
			if a.status != 404 || !strings.Contains(string(a.body), spoken) {
				t.Errorf("%s: %d: %s", path, a.status, a.body)
			}
		}
	}
	for _, path := range []string{"/v1/chat/completions/", "/v1/messages/", "/v1/responses/", "/api/chat/"} {
		if a := s.post(t, path, `{}`); a.status != 400 || !strings.Contains(string(a.body), "model") {
			t.Errorf("%s: %d: %s", path, a.status, a.body)
		}
	}
}
