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

const responsesPath = "/v1/responses"

var responsesClient = speaker{
	name: "responses", path: responsesPath,
	user: func(text string) any { return object{"role": "user", "content": text} },
	body: func(q ask) object {
		body := object{"model": "pocket", "max_output_tokens": q.maxTokens, "store": false,
			"input": messagesOf(object{"role": "user", "content": "Hi"}, q)}
		if !q.thinking {
			body["reasoning"] = object{"effort": "none"}
		}
		if q.tools {
			body["tools"] = toolList(func(name string, parameters any) object {
				return object{"type": "function", "name": name, "parameters": parameters, "strict": false}
			})
		}
		return q.onto(body)
	},
	whole: func(t *testing.T, raw []byte) heard {
		var r responseRead
		unmarshal(t, raw, &r)
		return r.heard(t)
	},
	streamed: func(t *testing.T, raw []byte) heard { return joinResponse(t, raw).heard(t) },
	back: func(h heard) (turns []any) {
		for _, item := range h.raw.([]json.RawMessage) {
			turns = append(turns, item)
		}
		for _, c := range h.calls {
			turns = append(turns, object{"type": "function_call_output", "call_id": c.ID, "output": "done"})
		}
		return turns
	},
}

type responseRead struct {
	ID, Object, Status, Model string
	Output                    []json.RawMessage
	Previous                  *string `json:"previous_response_id"`
	Store                     bool
	Incomplete                *struct{ Reason string } `json:"incomplete_details"`
	Error                     *struct{ Code, Message string }
	Usage                     struct {
		Input   int `json:"input_tokens"`
		Output  int `json:"output_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		Slipway struct{ Notice string }
	}
	Slipway struct{ Notice string }
}

type responseItem struct {
	Type, ID, Status, Role, Name, Namespace, Arguments string
	CallID                                             string `json:"call_id"`
	Content                                            []struct{ Type, Text string }
	Summary                                            []any
}

func (r *responseRead) heard(t *testing.T) heard {
	t.Helper()
	h := heard{finish: r.Status, notice: r.Slipway.Notice, raw: r.Output, prompt: r.Usage.Input,
		completion: r.Usage.Output}
	if r.Incomplete != nil {
		h.finish += " " + r.Incomplete.Reason
	}
	ids := map[string]bool{}
	for _, raw := range r.Output {
		var i responseItem
		unmarshal(t, raw, &i)
		if ids[i.ID] || i.ID == "" || i.Status != "completed" {
			t.Errorf("id or status of %s", raw)
		}
		ids[i.ID] = true
		switch i.Type {
		case "message":
			h.content += i.Content[0].Text
		case "reasoning":
			h.thinking += i.Content[0].Text
		case "function_call":
			c := call{ID: i.CallID}
			c.Function.Name, c.Function.Arguments = i.Name, i.Arguments
			h.calls = append(h.calls, c)
		default:
			t.Errorf("item %s", raw)
		}
	}
	return h
}

// joinResponse puts a stream together from its deltas, and checks that its events say the same and are in order.
func joinResponse(t *testing.T, raw []byte) *responseRead {
	t.Helper()
	var whole *responseRead
	var done []string // texts of items
	next, text, open := 0, "", false
	readEvents(t, raw, func(kind string, data []byte) {
		var e struct {
			Sequence                     int `json:"sequence_number"`
			Response                     *responseRead
			OutputIndex                  int `json:"output_index"`
			ItemID                       string
			Item                         responseItem
			Part                         *struct{ Type, Text string }
			Delta, Text, Arguments, Name string
		}
		unmarshal(t, data, &e)
		if e.Sequence != next || whole != nil {
			t.Fatalf("event %d has the number %d, in %s", next, e.Sequence, raw)
		}
		next++
		switch kind {
		case "response.created", "response.in_progress":
			if e.Response.Status != "in_progress" || len(e.Response.Output) != 0 {
				t.Errorf("%s", data)
			}
		case "response.output_item.added":
			if open || e.OutputIndex != len(done) || e.Item.Status != "in_progress" {
				t.Fatalf("item %d begins out of order in %s", e.OutputIndex, raw)
			}
			open, text = true, ""
		case "response.content_part.added":
			if e.Part.Text != "" {
				t.Errorf("%s", data)
			}
		case "response.output_text.delta", "response.reasoning_text.delta", "response.function_call_arguments.delta":
			if !open || e.OutputIndex != len(done) {
				t.Fatalf("a delta of item %d in %s", e.OutputIndex, raw)
			}
			text += e.Delta
		case "response.output_text.done", "response.reasoning_text.done", "response.function_call_arguments.done":
			if e.Text+e.Arguments != text {
				t.Errorf("%s, after deltas of %q", data, text)
			}
		case "response.content_part.done":
			if e.Part.Text != text {
				t.Errorf("%s, after deltas of %q", data, text)
			}
		case "response.output_item.done":
			if !open || e.OutputIndex != len(done) {
				t.Fatalf("item %d ends out of order in %s", e.OutputIndex, raw)
			}
			open = false
			done = append(done, text)
		case "response.completed", "response.incomplete":
			whole = e.Response
		default:
			t.Fatalf("event %q", kind)
		}
	})
	if whole == nil || open || len(whole.Output) != len(done) {
		t.Fatalf("the stream does not end whole: %s", raw)
	}
	for i, raw := range whole.Output {
		var last responseItem
		unmarshal(t, raw, &last)
		for _, p := range last.Content {
			last.Arguments += p.Text
		}
		if last.Arguments != done[i] {
			t.Errorf("item %d is %s, streamed %q", i, raw, done[i])
		}
	}
	return whole
}

// responded gives a whole response.
func (s *server) responded(t *testing.T, members string) *responseRead {
	t.Helper()
	s.prompt.Store(nil)
	a := s.post(t, responsesPath, `{"model":"pocket",`+members+`}`)
	if a.status != 200 {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	var r responseRead
	unmarshal(t, a.body, &r)
	return &r
}

func TestInputMeansWhatItSays(t *testing.T) {
	const head, think = "<|endoftext|>", "<|im_start|>assistant\n<think>\n"
	const off = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
	const hi = "<|im_start|>user\nHi<|im_end|>\n"
	user := `{"role":"user","content":"Hi"}`
	step := `{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hmm"}],` +
		`"encrypted_content":null},{"type":"message","id":"m","status":"completed","role":"assistant","content":[{"type":` +
		`"output_text","text":"I look.","annotations":[],"logprobs":[]}]},{"type":"function_call","id":"c","status":` +
		`"completed","name":"f","arguments":"{\"b\":\"c\"}","call_id":"a"}`
	stepped := "<|im_start|>assistant\n<think>\nhmm\n</think>\n\nI look.\n\n<tool_call>\n<function=f>\n<parameter=b>\nc\n" +
		"</parameter>\n</function>\n</tool_call><|im_end|>\n"
	result := `{"type":"function_call_output","id":"o","call_id":"a","output":"ok"}`
	resulted := "<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n"
	for _, test := range []struct{ name, members, want string }{
		{"text", `"input":"Hi"`, head + hi + think},
		{"message", `"input":[` + user + `]`, head + hi + think},
		{"parts", `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"H"},` +
			`{"type":"input_text","text":"i"}]}]`, head + hi + think},
		{"no thinking", `"input":"Hi","reasoning":{"effort":"none","summary":"auto"}`, head + hi + off},
		{"instructions and developer", `"instructions":"Be brief.","input":[{"role":"developer","content":"Be kind."},` +
			user + `]`, head + "<|im_start|>system\nBe brief.\n\nBe kind.<|im_end|>\n" + hi + think},
		{"a step", `"input":[` + user + `,` + step + `,` + result + `]`, head + hi + stepped + resulted + think},
		{"two steps", `"input":[` + user + `,` + step + `,` + result + `,` + step + `,` + result + `]`,
			head + hi + stepped + resulted + stepped + resulted + think},
		{"thinking that only another server can read", `"input":[` + user + `,{"type":"reasoning","summary":[{"type":` +
			`"summary_text","text":"s"}],"encrypted_content":"x","content":null},{"role":"assistant","content":"Yes."},` +
			user + `]`, head + hi + off + "Yes.<|im_end|>\n" + hi + think},
		{"result of parts", `"input":[` + user + `,` + step + `,{"type":"function_call_output","call_id":"a","output":[` +
			`{"type":"input_text","text":"o"},{"type":"input_text","text":"k"}]}]`, head + hi + stepped + resulted + think},
		{"result of JSON", `"input":[` + user + `,` + step + `,{"type":"function_call_output","call_id":"a","output":{"a": 1}}]`,
			head + hi + stepped + strings.Replace(resulted, "ok", `{"a":1}`, 1) + think},
		{"a call in a namespace", `"input":[` + user + `,{"type":"function_call","namespace":"n","name":"f","arguments":"{}",` +
			`"call_id":"a"},` + result + `]`,
			head + hi + off + "<tool_call>\n<function=n.f>\n</function>\n</tool_call><|im_end|>\n" + resulted + think},
		{"continued", `"input":[` + user + `,{"role":"assistant","content":"So"}]`, head + hi + think + "\n</think>\n\nSo"},
		{"as Codex asks", `"input":[` + user + `],"stream":false,"tool_choice":"auto","parallel_tool_calls":true,` +
			`"reasoning":{"summary":"auto"},"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k",` +
			`"client_metadata":{"a":"b"}`, head + hi + think},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			s.responded(t, test.members)
			if got := pocket().Tokenizer.Decode(*s.prompt.Load()); got != test.want {
				t.Errorf("prompt\n%q, want\n%q", got, test.want)
			}
		})
	}
}

// A response is gone on from by its id: the conversation is the same as if its items had been sent again.
func TestResponseIsGoneOnFromByItsID(t *testing.T) {
	s := start(t, setup{})
	s.say("I look.\n\n" + timeCall)
	var tools []struct{ Function json.RawMessage }
	unmarshal(t, []byte(strings.TrimPrefix(twoTools, `,"tools":`)), &tools)
	members := `"tools":[` + strings.Replace(string(tools[1].Function), "{", `{"type":"function",`, 1) +
		`],"reasoning":{"effort":"none"}`
	first := s.responded(t, members+`,"instructions":"Be brief.","input":"Hi"`)
	h := first.heard(t)
	if !regexp.MustCompile(`^resp_[0-9a-f]{32}$`).MatchString(first.ID) || len(h.calls) != 1 || !first.Store {
		t.Fatalf("%+v", first)
	}
	result := object{"type": "function_call_output", "call_id": h.calls[0].ID, "output": "noon"}
	write := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	s.say("It is noon.")
	second := s.responded(t, members+`,"previous_response_id":"`+first.ID+`","input":`+write([]any{result}))
	byID := pocket().Tokenizer.Decode(*s.prompt.Load())
	s.responded(t, members+`,"store":false,"input":`+write(append([]any{object{"role": "user", "content": "Hi"}},
		append(responsesClient.back(h)[:len(first.Output)], result)...)))
	if whole := pocket().Tokenizer.Decode(*s.prompt.Load()); whole != byID || !strings.Contains(byID, "noon") ||
		strings.Contains(byID, "Be brief.") { // instructions are each request's own
		t.Errorf("by its id\n%q, whole\n%q", byID, whole)
	}
	if *second.Previous != first.ID {
		t.Errorf("%+v", second)
	}
	// Items may be named too.
	var item responseItem
	unmarshal(t, second.Output[0], &item)
	s.responded(t, `"input":[{"role":"user","content":"Hi"},{"type":"item_reference","id":"`+item.ID+
		`"},{"role":"user","content":"More."}]`)
	if got := pocket().Tokenizer.Decode(*s.prompt.Load()); !strings.Contains(got, "It is noon.") {
		t.Errorf("%q", got)
	}

	var again responseRead
	unmarshal(t, s.get(t, responsesPath+"/"+second.ID).body, &again)
	if again.ID != second.ID || again.heard(t).content != "It is noon." {
		t.Errorf("%+v", again)
	}
	remove := func(r *http.Request) { r.Method = http.MethodDelete }
	if a := s.get(t, responsesPath+"/"+second.ID, remove); a.status != 200 ||
		!strings.Contains(string(a.body), `"deleted":true`) {
		t.Errorf("%d: %s", a.status, a.body)
	}
	gone := func(what, body string) {
		t.Helper()
		a := s.post(t, responsesPath, `{"model":"pocket","input":"x",`+body+`}`)
		if a.status != 404 || !strings.Contains(string(a.body), "previous_response_id") {
			t.Errorf("%s: %d: %s", what, a.status, a.body)
		}
	}
	gone("deleted", `"previous_response_id":"`+second.ID+`"`)
	gone("unknown", `"previous_response_id":"resp_1"`)
	unkept := s.responded(t, `"store":false,"input":"Hi"`)
	gone("not stored", `"previous_response_id":"`+unkept.ID+`"`)
	for range 64 {
		s.responded(t, `"input":"Hi","max_output_tokens":1`)
	}
	gone("older than the latest 64", `"previous_response_id":"`+first.ID+`"`)
	last := s.responded(t, `"input":"Hi"`)
	if a := s.post(t, "/slipway/reload", "{}"); a.status != 200 {
		t.Fatalf("%d: %s", a.status, a.body)
	}
	gone("before a reload", `"previous_response_id":"`+last.ID+`"`)
	if a := s.get(t, responsesPath+"/"+last.ID); a.status != 404 {
		t.Errorf("after a reload: %d: %s", a.status, a.body)
	}
}

func TestFunctionsOfANamespaceKeepIt(t *testing.T) {
	s := start(t, setup{})
	s.say(strings.Replace(timeCall, "get_time", "clock.get_time", 1))
	members := `"input":"Hi","reasoning":{"effort":"none"},"tools":[{"type":"namespace","name":"clock","description":"d",` +
		`"tools":[{"type":"function","name":"get_time","parameters":{"type":"object","properties":{"zone":{"type":"string"}}}}]}]`
	for _, stream := range []string{`,"stream":true`, ""} {
		a := s.post(t, responsesPath, `{"model":"pocket",`+members+stream+`}`)
		if !strings.Contains(string(a.body), `"namespace":"clock","name":"get_time"`) {
			t.Errorf("%s", a.body)
		}
	}
}

func TestResponsesRefuseByName(t *testing.T) {
	with := func(members string) string { return `{"model":"pocket","input":"Hi"` + members + `}` }
	item := func(item string) string { return `{"model":"pocket","input":[` + item + `]}` }
	for _, test := range []struct {
		name, body, param string
		status            int
	}{
		{"no input", `{"model":"pocket"}`, "input", 400},
		{"another model", `{"model":"gpt-5","input":"Hi"}`, "model", 404},
		{"hosted tool", with(`,"tools":[{"type":"web_search"}]`), "tools[0].type", 400},
		{"custom tool", with(`,"tools":[{"type":"custom","name":"f"}]`), "tools[0].type", 400},
		{"strict tool", with(`,"tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":7}}]`), "tools[0].strict", 400},
		{"one name twice", with(`,"tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}]`),
			"tools[1].name", 400},
		{"hosted choice", with(`,"tool_choice":{"type":"file_search"}`), "tool_choice.type", 400},
		{"choice of nothing", with(`,"tool_choice":{"type":"function","name":"f"}`), "tool_choice", 400},
		{"image", item(`{"role":"user","content":[{"type":"input_image"}]}`), "input[0].content[0].type", 400},
		{"a call of OpenAI's", item(`{"type":"web_search_call"}`), "input[0].type", 400},
		{"unknown item", item(`{"type":"item_reference","id":"msg_1"}`), "input[0].id", 404},
		{"result of no call", item(`{"type":"function_call_output","output":"x"}`), "input[0].call_id", 400},
		{"role", item(`{"role":"tool","content":"x"}`), "input[0].role", 400},
		{"format", with(`,"text":{"format":{"type":"xml"}}`), "text.format.type", 400},
		{"no schema", with(`,"text":{"format":{"type":"json_schema","name":"n"}}`), "text.format.schema", 400},
		{"schema", with(`,"text":{"format":{"type":"json_schema","name":"n","schema":{"not":{}}}}`), "text.format.schema", 400},
		{"verbosity", with(`,"text":{"verbosity":"low"}`), "text.verbosity", 400},
		{"background", with(`,"background":true`), "background", 400},
		{"truncation", with(`,"truncation":"auto"`), "truncation", 400},
		{"log probabilities", with(`,"include":["message.output_text.logprobs"]`), "include[0]", 400},
		{"top_logprobs", with(`,"top_logprobs":2`), "top_logprobs", 400},
		{"effort", with(`,"reasoning":{"effort":"wild"}`), "reasoning.effort", 400},
		{"conversation", with(`,"conversation":"conv_1"`), "conversation", 400},
		{"prompt", with(`,"prompt":{"id":"x"}`), "prompt", 400},
		{"no tokens", with(`,"max_output_tokens":0`), "max_output_tokens", 400},
		{"temperature", with(`,"temperature":9`), "temperature", 400},
		{"too long", `{"model":"pocket","input":"` + strings.Repeat("word ", 3000) + `"}`, "", 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			a := s.post(t, responsesPath, test.body)
			e := decode[reply](t, a.body).Error
			if a.status != test.status || e == nil || e.Param != test.param || e.Type != "invalid_request_error" {
				t.Fatalf("status %d: %s", a.status, a.body)
			}
			if test.name == "too long" && (e.Code != "context_length_exceeded" ||
				!strings.Contains(e.Message, "maximum context length is 2048 tokens")) {
				t.Errorf("%s", a.body)
			}
		})
	}
}

// In a stream, what fails is the response: Codex shortens a conversation that is said to be too long there.
func TestFailedResponseSaysSo(t *testing.T) {
	broken := setup{pass: func([]pass.Segment) error { return fmt.Errorf("page 7 is gone") }}
	if a := start(t, broken).tell(t, responsesClient, ask{maxTokens: 5}); a.status != 500 {
		t.Errorf("plain: %d: %s", a.status, a.body)
	}
	for name, c := range map[string]struct {
		how  setup
		q    ask
		code string
	}{
		"broken": {broken, ask{maxTokens: 5, stream: true}, "internal_error"},
		"too long": {setup{}, ask{maxTokens: 5, stream: true, later: []any{
			responsesClient.user(strings.Repeat("word ", 3000))}}, "context_length_exceeded"},
	} {
		a := start(t, c.how).tell(t, responsesClient, c.q)
		var last responseRead
		readEvents(t, a.body, func(kind string, data []byte) {
			if kind == "response.failed" {
				var e struct{ Response responseRead }
				unmarshal(t, data, &e)
				last = e.Response
			}
		})
		if a.status != 200 || last.Status != "failed" || last.Error == nil || last.Error.Code != c.code ||
			strings.Contains(string(a.body), "page 7") || strings.Contains(string(a.body), "response.completed") {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

func TestResponseKeepsItsClientAlive(t *testing.T) {
	open := make(chan struct{})
	s := start(t, setup{keepAlive: 5 * time.Millisecond, pass: func([]pass.Segment) error { <-open; return nil }})
	if got := waited(t, s, responsesPath, `{"model":"pocket","stream":true,"reasoning":{"effort":"none"},"input":"Hi"}`,
		"\n:\n", open); joinResponse(t, got).heard(t).content != "Hello!" {
		t.Errorf("%s", got)
	}
}

// waited gives the body of a reply that may begin once mark was sent three times.
func waited(t *testing.T, s *server, path, body, mark string, begin chan struct{}) (got []byte) {
	t.Helper()
	r, _ := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for buffer, begun := make([]byte, 1024), false; ; {
		n, err := response.Body.Read(buffer)
		got = append(got, buffer[:n]...)
		if strings.Count(string(got), mark) >= 3 && !begun {
			begun = true
			close(begin)
		}
		if err != nil {
			return got
		}
	}
}
