package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"slipway/engine/pass"
)

const messagesPath = "/v1/messages"

var anthropicClient = speaker{
	name: "anthropic", path: messagesPath,
	user: func(text string) any { return object{"role": "user", "content": text} },
	body: func(q ask) object {
		body := object{"model": "pocket", "max_tokens": q.maxTokens,
			"messages": messagesOf(object{"role": "user", "content": "Hi"}, q)}
		if q.thinking {
			body["thinking"] = object{"type": "adaptive"}
		}
		if q.tools {
			body["tools"] = toolList(func(name string, parameters any) object {
				return object{"name": name, "input_schema": parameters}
			})
		}
		return q.onto(body)
	},
	whole: func(t *testing.T, raw []byte) heard {
		var m anthropicMessage
		unmarshal(t, raw, &m)
		return m.heard(t)
	},
	streamed: func(t *testing.T, raw []byte) heard { return joinMessage(t, raw).heard(t) },
	back: func(h heard) []any {
		turns := []any{object{"role": "assistant", "content": h.raw}}
		var results []object
		for _, c := range h.calls {
			results = append(results, object{"type": "tool_result", "tool_use_id": c.ID, "content": "done"})
		}
		if results != nil {
			turns = append(turns, object{"role": "user", "content": results})
		}
		return turns
	},
}

type anthropicMessage struct {
	ID, Type, Role, Model string
	Content               []anthropicBlock
	StopReason            string  `json:"stop_reason"`
	StopSequence          *string `json:"stop_sequence"`
	Usage                 anthropicUsage
	Slipway               struct{ Notice string }
}

type anthropicUsage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Cached  int `json:"cache_read_input_tokens"`
	Slipway struct{ Notice string }
}

type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      *string          `json:"text,omitempty"`
	Thinking  *string          `json:"thinking,omitempty"`
	Signature *string          `json:"signature,omitempty"`
	ID        string           `json:"id,omitempty"`
	Name      string           `json:"name,omitempty"`
	Input     *json.RawMessage `json:"input,omitempty"`
}

func (m *anthropicMessage) heard(t *testing.T) heard {
	t.Helper()
	h := heard{finish: m.StopReason, notice: m.Slipway.Notice, raw: m.Content, prompt: m.Usage.Input + m.Usage.Cached,
		completion: m.Usage.Output}
	if m.Usage.Slipway.Notice != h.notice {
		t.Errorf("notices %q and %q", m.Usage.Slipway.Notice, h.notice)
	}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			h.content += *b.Text
		case "thinking":
			if !strings.HasPrefix(*b.Signature, "slipway-") {
				t.Errorf("signature %q", *b.Signature)
			}
			h.thinking += *b.Thinking
		case "tool_use":
			c := call{ID: b.ID}
			c.Function.Name, c.Function.Arguments = b.Name, string(*b.Input)
			h.calls = append(h.calls, c)
		default:
			t.Errorf("block %+v", b)
		}
	}
	return h
}

// joinMessage puts a stream together and checks the order of its events.
func joinMessage(t *testing.T, raw []byte) *anthropicMessage {
	t.Helper()
	var m *anthropicMessage
	var arguments string
	open, whole := false, false
	readEvents(t, raw, func(kind string, data []byte) {
		var e struct {
			Message anthropicMessage
			Index   int
			Block   anthropicBlock `json:"content_block"`
			Delta   struct {
				Type, Text, Thinking, Signature string
				PartialJSON                     string  `json:"partial_json"`
				StopReason                      string  `json:"stop_reason"`
				StopSequence                    *string `json:"stop_sequence"`
			}
			Usage   anthropicUsage
			Slipway struct{ Notice string }
		}
		unmarshal(t, data, &e)
		if whole || (m == nil) != (kind == "message_start") {
			t.Fatalf("%s out of order in %s", kind, raw)
		}
		switch kind {
		case "message_start":
			m = &e.Message
		case "ping":
		case "content_block_start":
			if open || e.Index != len(m.Content) {
				t.Fatalf("block %d begins out of order in %s", e.Index, raw)
			}
			open, arguments = true, ""
			m.Content = append(m.Content, e.Block)
		case "content_block_delta":
			if !open || e.Index != len(m.Content)-1 {
				t.Fatalf("a delta of block %d in %s", e.Index, raw)
			}
			b := &m.Content[e.Index]
			switch e.Delta.Type {
			case "text_delta":
				*b.Text += e.Delta.Text
			case "thinking_delta":
				*b.Thinking += e.Delta.Thinking
			case "signature_delta":
				*b.Signature += e.Delta.Signature
			case "input_json_delta":
				arguments += e.Delta.PartialJSON
			default:
				t.Fatalf("delta %q", e.Delta.Type)
			}
		case "content_block_stop":
			if !open || e.Index != len(m.Content)-1 {
				t.Fatalf("block %d ends out of order in %s", e.Index, raw)
			}
			open = false
			if b := &m.Content[e.Index]; b.Type == "tool_use" {
				*b.Input = json.RawMessage(arguments)
			}
		case "message_delta":
			if open {
				t.Fatalf("%s before the block's end in %s", kind, raw)
			}
			m.StopReason, m.StopSequence, m.Usage, m.Slipway = e.Delta.StopReason, e.Delta.StopSequence, e.Usage,
				e.Slipway
		case "message_stop":
			whole = true
		default:
			t.Fatalf("event %q", kind)
		}
	})
	if !whole {
		t.Fatalf("the stream ends without message_stop: %s", raw)
	}
	return m
}

func TestMessageSaysHowItEnded(t *testing.T) {
	for _, test := range []struct {
		name, say  string
		also       object
		stop, text string
		sequence   string
		blocks     string
	}{
		{"of itself", "Hello!", nil, "end_turn", "Hello!", "", "text"},
		{"tokens ran out", "Hello! Hello! Hello!", object{"max_tokens": 3}, "max_tokens", "", "", "text"},
		{"stop text", "one, two, three", object{"stop_sequences": []string{"x", ", two"}}, "stop_sequence", "one",
			", two", "text"},
		{"calls", "I look.\n\n" + weatherCall + "\n" + timeCall, nil, "tool_use", "I look.", "",
			"text tool_use tool_use"},
		{"one call", weatherCall + "\n" + timeCall, object{"tool_choice": object{"type": "auto",
			"disable_parallel_tool_use": true}}, "tool_use", "", "", "tool_use"},
		{"any call", timeCall, object{"tool_choice": object{"type": "any"}}, "tool_use", "", "", "tool_use"},
		{"a named call", timeCall, object{"tool_choice": object{"type": "tool", "name": "get_time"}}, "tool_use", "",
			"", "tool_use"},
		{"no call wanted", "Hello!", object{"tool_choice": object{"type": "none"}}, "end_turn", "Hello!", "", "text"},
		{"thinking", "They greet.\n</think>\n\nHello!", object{"thinking": object{"type": "enabled",
			"budget_tokens": 1024}}, "end_turn", "Hello!", "", "thinking text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			s.say(test.say)
			var tools []struct{ Function object }
			unmarshal(t, []byte(strings.TrimPrefix(twoTools, `,"tools":`)), &tools)
			var given []object
			for _, tool := range tools {
				given = append(given, object{"name": tool.Function["name"],
					"input_schema": tool.Function["parameters"]})
			}
			q := ask{maxTokens: 500, also: object{"tools": given}}
			for name, value := range test.also {
				q.also[name] = value
			}
			for _, stream := range []bool{false, true} {
				q.stream = stream
				a := s.tell(t, anthropicClient, q)
				var m *anthropicMessage
				if stream {
					m = joinMessage(t, a.body)
				} else {
					unmarshal(t, a.body, &m)
				}
				var blocks []string
				for _, b := range m.Content {
					blocks = append(blocks, b.Type)
				}
				h := m.heard(t)
				sequence := ""
				if m.StopSequence != nil {
					sequence = *m.StopSequence
				}
				if m.StopReason != test.stop || sequence != test.sequence || strings.Join(blocks, " ") != test.blocks ||
					test.text != "" && strings.TrimSpace(h.content) != test.text {
					t.Errorf("stream %v: %s", stream, a.body)
				}
				if m.Type != "message" || m.Role != "assistant" || m.Model != "pocket" ||
					!strings.HasPrefix(m.ID, "msg_") || h.prompt < 10 || h.completion < 1 {
					t.Errorf("stream %v: %+v", stream, m)
				}
			}
		})
	}
}

// messagesPrompt gives the prompt that the model read.
func (s *server) messagesPrompt(t *testing.T, members string) string {
	t.Helper()
	s.prompt.Store(nil)
	if a := s.post(t, messagesPath, `{"model":"pocket","max_tokens":50,`+members+`}`); a.status != 200 {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	return pocket().Tokenizer.Decode(*s.prompt.Load())
}

func TestMessagesMeanWhatTheySay(t *testing.T) {
	const head, off = "<|endoftext|>", "<|im_start|>assistant\n<think>\n\n</think>\n\n"
	const hi = "<|im_start|>user\nHi<|im_end|>\n"
	user := `{"role":"user","content":"Hi"}`
	use := `{"role":"assistant","content":[{"type":"thinking","thinking":"hmm","signature":"x"},{"type":"text","text":"I "},` +
		`{"type":"text","text":"look."},{"type":"tool_use","id":"a","name":"f","input":{"b":"c"},"caller":{"type":"direct"}}]}`
	used := "<|im_start|>assistant\n<think>\nhmm\n</think>\n\nI look.\n\n<tool_call>\n<function=f>\n<parameter=b>\nc\n" +
		"</parameter>\n</function>\n</tool_call><|im_end|>\n"
	for _, test := range []struct{ name, members, want string }{
		{"text", `"messages":[` + user + `]`, head + hi + off},
		{"blocks", `"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}},` +
			`{"type":"text","text":"you","citations":null}]}]`, head + "<|im_start|>user\nHi\n\nyou<|im_end|>\n" + off},
		{"thinking", `"messages":[` + user + `],"thinking":{"type":"adaptive"}`, head + hi + "<|im_start|>assistant\n<think>\n"},
		{"system", `"system":"Be brief.","messages":[` + user + `]`,
			head + "<|im_start|>system\nBe brief.<|im_end|>\n" + hi + off},
		{"system of blocks, the first of which changes", `"system":[{"type":"text","text":"x-anthropic-billing-header: v=1;"},` +
			`{"type":"text","text":"Be brief."},{"type":"text","text":"Be kind."}],"messages":[` + user + `]`,
			head + "<|im_start|>system\nBe brief.\n\nBe kind.<|im_end|>\n" + hi + off},
		{"system that only changes", `"system":[{"type":"text","text":"x-anthropic-billing-header: v=1;"}],"messages":[` +
			user + `]`, head + hi + off},
		{"system behind", `"messages":[` + user + `,{"role":"system","content":"Be brief."}]`,
			head + hi + "<|im_start|>user\nSystem message:\nBe brief.<|im_end|>\n" + off},
		{"results", `"messages":[` + user + `,` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a",` +
			`"content":"ok"},{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"bad"}]},` +
			`{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"Go on."}]}]`,
			head + hi + strings.Replace(used, "hmm", "", 1) +
				"<|im_start|>user\n<tool_response>\nok\n</tool_response>\n" +
				"<tool_response>\nError:\nbad\n</tool_response>\n<tool_response>\n\n</tool_response><|im_end|>\n" +
				"<|im_start|>user\nGo on.<|im_end|>\n" + off},
		{"results, thinking kept", `"messages":[` + user + `,` + use + `,{"role":"user","content":[{"type":"tool_result",` +
			`"tool_use_id":"a","content":"ok"}]}]`,
			head + hi + used + "<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n" + off},
		{"hidden thinking", `"messages":[` + user + `,{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},` +
			`{"type":"text","text":"Yes."}]},` + user + `]`,
			head + hi + "<|im_start|>assistant\n<think>\n\n</think>\n\nYes.<|im_end|>\n" + hi + off},
		{"prefill", `"messages":[` + user + `,{"role":"assistant","content":"So"}]`, head + hi + off + "So"},
		{"nothing said", `"messages":[{"role":"user","content":[]}]`, head + "<|im_start|>user\n<|im_end|>\n" + off},
		{"as Claude Code asks", `"messages":[` + user + `],"metadata":{"user_id":"x"},"thinking":{"type":"adaptive"},` +
			`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"output_config":{"effort":"high"},` +
			`"stream":true`, head + hi + "<|im_start|>assistant\n<think>\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			want := strings.Replace(test.want, "<think>\n\n\n</think>", "<think>\n\n</think>", 1)
			if got := s.messagesPrompt(t, test.members); got != want {
				t.Errorf("prompt\n%q, want\n%q", got, want)
			}
		})
	}
}

// The count is the prompt's, whatever is asked for beside it.
func TestCountIsThePrompts(t *testing.T) {
	s := start(t, setup{})
	members := `"model":"pocket","system":"Be brief.","messages":[{"role":"user","content":"Hello you"}],` +
		`"tools":[{"name":"f","input_schema":{"type":"object"}}]`
	var counted struct {
		Tokens int `json:"input_tokens"`
	}
	unmarshal(t, s.post(t, messagesPath+"/count_tokens", "{"+members+"}").body, &counted)
	var m anthropicMessage
	unmarshal(t, s.post(t, messagesPath, `{"max_tokens":1,`+members+"}").body, &m)
	if counted.Tokens != m.Usage.Input+m.Usage.Cached || counted.Tokens < 20 || s.net.Passes() > 3 {
		t.Errorf("counted %d, read %+v, %d passes", counted.Tokens, m.Usage, s.net.Passes())
	}
}

func TestMessagesRefuseInTheirOwnForm(t *testing.T) {
	body := func(members string) string {
		return `{"model":"pocket","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]` + members + `}`
	}
	message := func(content string) string {
		return `{"model":"pocket","max_tokens":5,"messages":[{"role":"user","content":[` + content + `]}]}`
	}
	for _, test := range []struct {
		name, body, kind, says string
		status                 int
	}{
		{"no JSON", `{`, "invalid_request_error", "not whole JSON", 400},
		{"no model", `{"max_tokens":5,"messages":[]}`, "invalid_request_error", "model", 400},
		{"another model", strings.Replace(body(""), "pocket", "claude-x", 1), "not_found_error", "pocket", 404},
		{"no bound", `{"model":"pocket","messages":[{"role":"user","content":"Hi"}]}`, "invalid_request_error",
			"max_tokens", 400},
		{"no messages", `{"model":"pocket","max_tokens":5}`, "invalid_request_error", "messages", 400},
		{"no content", `{"model":"pocket","max_tokens":5,"messages":[{"role":"user"}]}`, "invalid_request_error",
			"messages[0].content", 400},
		{"image", message(`{"type":"image","source":{"type":"base64"}}`), "invalid_request_error",
			"messages[0].content[0].type", 400},
		{"document", message(`{"type":"document"}`), "invalid_request_error", "messages[0].content[0].type", 400},
		{"image in a result", message(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"image"}]}`),
			"invalid_request_error", "messages[0].content[0].content[0].type", 400},
		{"a result of nothing", message(`{"type":"tool_result"}`), "invalid_request_error", "tool_use_id", 400},
		{"a call of the server's", strings.Replace(message(`{"type":"server_tool_use"}`), "user", "assistant", 1),
			"invalid_request_error", "server_tool_use", 400},
		{"role", strings.Replace(body(""), `"user"`, `"tool"`, 1), "invalid_request_error", "messages[0].role", 400},
		{"hosted tool", body(`,"tools":[{"type":"web_search_20250305","name":"web_search"}]`), "invalid_request_error",
			"web_search_20250305", 400},
		{"strict tool", body(`,"tools":[{"name":"f","strict":true,"input_schema":{"type":7}}]`), "invalid_request_error",
			"tools[0].strict", 400},
		{"tool without a schema", body(`,"tools":[{"name":"f"}]`), "invalid_request_error", "tools[0].input_schema", 400},
		{"choice of no tool", body(`,"tool_choice":{"type":"tool","name":"f"}`), "invalid_request_error", "tool_choice",
			400},
		{"any of no tool", body(`,"tool_choice":{"type":"any"}`), "invalid_request_error", "tool_choice", 400},
		{"format", body(`,"output_config":{"format":{"type":"json_schema","schema":{"not":{}}}}`), "invalid_request_error",
			"output_config.format", 400},
		{"older format", body(`,"output_format":{"type":"json_schema","schema":{"not":{}}}`), "invalid_request_error",
			"output_format", 400},
		{"no schema", body(`,"output_format":{"type":"json_schema"}`), "invalid_request_error", "output_format.schema", 400},
		{"effort", body(`,"output_config":{"effort":"wild"}`), "invalid_request_error", "output_config.effort", 400},
		{"context edit", body(`,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`),
			"invalid_request_error", "context_management.edits[0].type", 400},
		{"thinking forgotten", body(`,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":1}]}`),
			"invalid_request_error", "keep", 400},
		{"MCP", body(`,"mcp_servers":[{}]`), "invalid_request_error", "mcp_servers", 400},
		{"temperature", body(`,"temperature":3`), "invalid_request_error", "temperature", 400},
		{"continued calls", `{"model":"pocket","max_tokens":5,"messages":[{"role":"user","content":"Hi"},{"role":"assistant",` +
			`"content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}]}`, "invalid_request_error", "messages", 400},
		{"too long", strings.Replace(body(""), "Hi", strings.Repeat("word ", 3000), 1), "invalid_request_error",
			"prompt is too long: ", 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			a := s.post(t, messagesPath, test.body)
			var e struct {
				Type  string
				Error struct{ Type, Message string }
			}
			unmarshal(t, a.body, &e)
			if a.status != test.status || e.Type != "error" || e.Error.Type != test.kind ||
				!strings.Contains(e.Error.Message, test.says) || a.header.Get("Request-Id") == "" {
				t.Errorf("status %d: %s", a.status, a.body)
			}
			if test.name == "too long" && !regexp.MustCompile(`^prompt is too long: \d{4,} tokens > 2048 maximum$`).
				MatchString(e.Error.Message) {
				t.Errorf("%s", a.body)
			}
		})
	}
}

// One path, two lists: the header that Anthropic's clients send says which is meant.
func TestModelsAreListedInTheFormOfTheClient(t *testing.T) {
	s := start(t, setup{})
	for _, path := range []string{"/v1/models", "/v1/models/"} {
		var theirs struct {
			Data    []struct{ Type, ID string }
			HasMore *bool `json:"has_more"`
		}
		theirForm := func(r *http.Request) { r.Header.Set("anthropic-version", "2023-06-01") }
		unmarshal(t, s.get(t, path, theirForm).body, &theirs)
		if len(theirs.Data) != 1 || theirs.Data[0].Type != "model" || theirs.Data[0].ID != "pocket" ||
			theirs.HasMore == nil {
			t.Errorf("%s: %+v", path, theirs)
		}
		if a := s.get(t, path); !strings.Contains(string(a.body), `"object":"list"`) {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	for name, status := range map[string]int{"pocket": 200, "other": 404} {
		a := s.get(t, "/v1/models/"+name, func(r *http.Request) { r.Header.Set("anthropic-version", "2023-06-01") })
		if a.status != status || !strings.Contains(string(a.body), `"type":"`) {
			t.Errorf("%s: %d: %s", name, a.status, a.body)
		}
	}
}

func TestFailedMessageDoesNotLookComplete(t *testing.T) {
	broken := setup{pass: func([]pass.Segment) error { return fmt.Errorf("page 7 is gone") }}
	a := start(t, broken).tell(t, anthropicClient, ask{maxTokens: 5})
	if a.status != 500 || !strings.Contains(string(a.body), `"type":"api_error"`) {
		t.Errorf("plain: %d: %s", a.status, a.body)
	}
	a = start(t, broken).tell(t, anthropicClient, ask{maxTokens: 5, stream: true})
	var last string
	readEvents(t, a.body, func(kind string, _ []byte) { last = kind })
	if last != "error" || strings.Contains(string(a.body), "page 7") {
		t.Errorf("stream: %s", a.body)
	}
}

// A message that is waited for sends pings, and begins before its first token.
func TestMessageKeepsItsClientAlive(t *testing.T) {
	open := make(chan struct{})
	s := start(t, setup{keepAlive: 5 * time.Millisecond, pass: func([]pass.Segment) error { <-open; return nil }})
	got := waited(t, s, messagesPath,
		`{"model":"pocket","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`, "event: ping", open)
	if m := joinMessage(t, got); m.heard(t).content != "Hello!" {
		t.Errorf("%s", got)
	}
}
