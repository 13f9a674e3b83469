package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

const (
	chatPath = "/v1/chat/completions"
	textPath = "/v1/completions"
)

func TestRefusalNamesTheField(t *testing.T) {
	tool := func(member string) string {
		return chat(`,"tools":[{"type":"function","function":{"name":"f"` + member + `}}]`)
	}
	message := func(m string) string { return `{"model":"pocket","messages":[` + m + `]}` }
	tests := []struct {
		name, path, body string
		status           int
		param            string
	}{
		{"empty body", chatPath, ``, 400, ""},
		{"cut JSON", chatPath, `{"model":"pocket","messages":[{"role":"us`, 400, ""},
		{"no JSON", chatPath, `model=pocket`, 400, ""},
		{"array", chatPath, `[]`, 400, ""},
		{"two bodies", chatPath, chat("") + chat(""), 400, ""},
		{"member twice", chatPath, chat(`,"seed":1,"seed":2`), 400, "seed"},
		{"deep nesting", chatPath, chat(`,"metadata":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000)), 400,
			""},
		{"no model", chatPath, `{"messages":[{"role":"user","content":"Hi"}]}`, 400, "model"},
		{"model is a number", chatPath, `{"model":1,"messages":[]}`, 400, "model"},
		{"unknown model", chatPath, `{"model":"gpt-4","messages":[{"role":"user","content":"Hi"}]}`, 404, "model"},
		{"unknown model, text", textPath, `{"model":"gpt-4","prompt":"Hi"}`, 404, "model"},
		{"no messages", chatPath, `{"model":"pocket"}`, 400, "messages"},
		{"messages empty", chatPath, message(``), 400, "messages"},
		{"messages is a string", chatPath, `{"model":"pocket","messages":"Hi"}`, 400, "messages"},
		{"message is a string", chatPath, message(`"Hi"`), 400, "messages[0]"},
		{"no role", chatPath, message(`{"content":"Hi"}`), 400, "messages[0].role"},
		{"unknown role", chatPath, message(`{"role":"wizard","content":"Hi"}`), 400, "messages[0].role"},
		{"function role", chatPath, message(`{"role":"function","name":"f","content":"Hi"}`), 400, "messages[0].role"},
		{"no content", chatPath, message(`{"role":"user"}`), 400, "messages[0].content"},
		{"content is a number", chatPath, message(`{"role":"user","content":5}`), 400, "messages[0].content"},
		{"image", chatPath, message(
			`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:"}}]}`), 400, "messages[0].content[1].type"},
		{"audio", chatPath, message(`{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}`), 400,
			"messages[0].content[0].type"},
		{"unknown member of a message", chatPath, message(`{"role":"user","content":"Hi","mood":"glad"}`), 400,
			"messages[0].mood"},
		{"tool without id", chatPath, message(`{"role":"user","content":"Hi"},{"role":"tool","content":"x"}`), 400,
			"messages[1].tool_call_id"},
		{"reasoning that differs", chatPath, message(
			`{"role":"user","content":"Hi"},{"role":"assistant","reasoning":"a","reasoning_content":"b","content":"c"}`), 400,
			"messages[1].reasoning"},
		{"audio of an assistant", chatPath, message(
			`{"role":"user","content":"Hi"},{"role":"assistant","audio":{"id":"x"},"content":"c"}`), 400,
			"messages[1].audio"},
		{"continued calls", chatPath, message(`{"role":"user","content":"Hi"},{"role":"assistant","prefix":true,` +
			`"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`), 400, "messages"},
		{"continued user", chatPath, chat(`,"continue_final_message":true`), 400, "continue_final_message"},
		{"no generation prompt", chatPath, chat(`,"add_generation_prompt":false`), 400, "add_generation_prompt"},
		{"continuation with a forced call", chatPath, `{"model":"pocket","messages":[{"role":"user","content":"Hi"},` +
			`{"role":"assistant","content":"So"}],"tool_choice":"required"` + twoTools + `}`, 400, "tool_choice"},
		{"continuation with a format", chatPath, `{"model":"pocket","messages":[{"role":"user","content":"Hi"},` +
			`{"role":"assistant","content":"So"}],"response_format":{"type":"json_object"}}`, 400, "response_format"},
		{"max_tokens below -1", chatPath, chat(`,"max_tokens":-2`), 400, "max_tokens"},
		{"n", chatPath, chat(`,"n":5`), 400, "n"},
		{"n zero", chatPath, chat(`,"n":0`), 400, "n"},
		{"response_format", chatPath, chat(`,"response_format":{"type":"xml"}`), 400, "response_format.type"},
		{"response_format without a schema", chatPath, chat(`,"response_format":{"type":"json_schema"}`), 400,
			"response_format.json_schema"},
		{"response_format of nothing", chatPath, chat(`,"response_format":{"type":"json_schema","json_schema":{}}`), 400,
			"response_format.json_schema.schema"},
		{"schema that nothing fulfils", chatPath, chat(`,"response_format":{"type":"json_schema","json_schema":{"name":"a",` +
			`"schema":{"type":"integer","minimum":3,"maximum":2}}}`), 400, "response_format"},
		{"schema with a keyword that is not kept", chatPath, chat(`,"response_format":{"type":"json_schema","json_schema":` +
			`{"name":"a","schema":{"not":{}}}}`), 400, "response_format"},
		{"functions", chatPath, chat(`,"functions":[{"name":"f"}]`), 400, "functions"},
		{"function_call", chatPath, chat(`,"function_call":"auto"`), 400, "function_call"},
		{"audio out", chatPath, chat(`,"modalities":["text","audio"]`), 400, "modalities"},
		{"audio settings", chatPath, chat(`,"audio":{"voice":"x"}`), 400, "audio"},
		{"web search", chatPath, chat(`,"web_search_options":{}`), 400, "web_search_options"},
		{"unknown member", chatPath, chat(`,"mirostat":2`), 400, "mirostat"},
		{"store", chatPath, chat(`,"store":true`), 400, "store"},
		{"service tier", chatPath, chat(`,"service_tier":"priority"`), 400, "service_tier"},
		{"verbosity", chatPath, chat(`,"verbosity":"low"`), 400, "verbosity"},
		{"temperature is a string", chatPath, chat(`,"temperature":"hot"`), 400, "temperature"},
		{"temperature too high", chatPath, chat(`,"temperature":2.5`), 400, "temperature"},
		{"top_p", chatPath, chat(`,"top_p":0`), 400, "top_p"},
		{"top_k is a fraction", chatPath, chat(`,"top_k":1.5`), 400, "top_k"},
		{"penalty", chatPath, chat(`,"presence_penalty":-3`), 400, "presence_penalty"},
		{"seed is a float", chatPath, chat(`,"seed":1e3`), 400, "seed"},
		{"bias of a word", chatPath, chat(`,"logit_bias":{"hello":1}`), 400, "logit_bias"},
		{"bias of no token", chatPath, chat(`,"logit_bias":{"4096":1}`), 400, "logit_bias"},
		{"bias too large", chatPath, chat(`,"logit_bias":{"5":101}`), 400, "logit_bias"},
		{"stop is a number", chatPath, chat(`,"stop":5`), 400, "stop"},
		{"stop holds null", chatPath, chat(`,"stop":["a",null]`), 400, "stop"},
		{"stop is empty", chatPath, chat(`,"stop":""`), 400, "stop"},
		{"too many stops", chatPath, chat(`,"stop":[` + strings.Repeat(`"a",`, 16) + `"b"]`), 400, "stop"},
		{"max_tokens zero", chatPath, chat(`,"max_tokens":0`), 400, "max_tokens"},
		{"two bounds", chatPath, chat(`,"max_tokens":5,"max_completion_tokens":6`), 400, "max_tokens"},
		{"stream is a string", chatPath, chat(`,"stream":"yes"`), 400, "stream"},
		{"stream_options without stream", chatPath, chat(`,"stream_options":{"include_usage":true}`), 400,
			"stream_options"},
		{"unknown stream option", chatPath, chat(`,"stream":true,"stream_options":{"fast":true}`), 400,
			"stream_options.fast"},
		{"top_logprobs alone", chatPath, chat(`,"top_logprobs":3`), 400, "top_logprobs"},
		{"top_logprobs too many", chatPath, chat(`,"logprobs":true,"top_logprobs":21`), 400, "top_logprobs"},
		{"logprobs is a number", chatPath, chat(`,"logprobs":3`), 400, "logprobs"},
		{"kwargs is a string", chatPath, chat(`,"chat_template_kwargs":"x"`), 400, "chat_template_kwargs"},
		{"enable_thinking is a string", chatPath, chat(`,"chat_template_kwargs":{"enable_thinking":"no"}`), 400,
			"chat_template_kwargs.enable_thinking"},
		{"kwargs that the template has not", chatPath, chat(`,"chat_template_kwargs":{"thinking_budget":5}`), 400,
			"chat_template_kwargs.thinking_budget"},
		{"reasoning_effort", chatPath, chat(`,"reasoning_effort":"banana"`), 400, "reasoning_effort"},
		{"reasoning_effort is empty", chatPath, chat(`,"reasoning_effort":""`), 400, "reasoning_effort"},
		{"not UTF-8", chatPath, strings.Replace(chat(""), "Hi", "H\xff", 1), 400, ""},
		{"half a character", textPath, "{\"model\":\"pocket\",\"prompt\":\"a\xc3\"}", 400, ""},
		{"tool name", chatPath, chat(`,"tools":[{"type":"function","function":{"name":"two words"}}]`), 400,
			"tools[0].function.name"},
		{"tool type", chatPath, chat(`,"tools":[{"type":"retrieval"}]`), 400, "tools[0].type"},
		{"strict tool with a schema of nothing", chatPath, tool(`,"strict":true,"parameters":{"type":"thing"}`), 400,
			"tools[0].function.strict"},
		{"strict tool whose schema is elsewhere", chatPath,
			tool(`,"strict":true,"parameters":{"$ref":"file:///etc/hostname"}`), 400, "tools[0].function.strict"},
		{"tool parameters", chatPath, tool(`,"parameters":"x"`), 400, "tools[0].function.parameters"},
		{"tool twice", chatPath,
			chat(`,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`),
			400, "tools[1].function.name"},
		{"tool_choice of no tool", chatPath,
			tool(`}}],"tool_choice":{"type":"function","function":{"name":"g"}},"stop":[{"x":{"y":1`), 400, "stop"},
		{"tool_choice unknown function", chatPath,
			chat(`,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}`), 400, "tool_choice"},
		{"tool_choice required without tools", chatPath, chat(`,"tool_choice":"required"`), 400, "tool_choice"},
		{"tool_choice word", chatPath, chat(`,"tool_choice":"always"`), 400, "tool_choice"},
		{"no prompt", textPath, `{"model":"pocket"}`, 400, "prompt"},
		{"prompt is an object", textPath, `{"model":"pocket","prompt":{}}`, 400, "prompt"},
		{"prompt is empty", textPath, `{"model":"pocket","prompt":""}`, 400, "prompt"},
		{"list of no prompt", textPath, `{"model":"pocket","prompt":[]}`, 400, "prompt"},
		{"two prompts", textPath, `{"model":"pocket","prompt":["a","b"]}`, 400, "prompt"},
		{"id out of range", textPath, `{"model":"pocket","prompt":[1,4096]}`, 400, "prompt[1]"},
		{"id is negative", textPath, `{"model":"pocket","prompt":[-1]}`, 400, "prompt[0]"},
		{"id is a float", textPath, `{"model":"pocket","prompt":[1.5]}`, 400, "prompt[0]"},
		{"ids and texts", textPath, `{"model":"pocket","prompt":[1,"a"]}`, 400, "prompt[1]"},
		{"echo", textPath, `{"model":"pocket","prompt":"a","echo":true}`, 400, "echo"},
		{"suffix", textPath, `{"model":"pocket","prompt":"a","suffix":"b"}`, 400, "suffix"},
		{"best_of", textPath, `{"model":"pocket","prompt":"a","best_of":2}`, 400, "best_of"},
		{"logprobs true", textPath, `{"model":"pocket","prompt":"a","logprobs":true}`, 400, "logprobs"},
		{"messages in a text completion", textPath, `{"model":"pocket","prompt":"a","messages":[]}`, 400, "messages"},
	}
	s := start(t, setup{})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := s.post(t, test.path, test.body)
			if a.status != test.status {
				t.Fatalf("status %d, want %d: %s", a.status, test.status, a.body)
			}
			var shape struct {
				Error struct {
					Message, Type string
					Param, Code   *string
				}
			}
			if err := json.Unmarshal(a.body, &shape); err != nil || shape.Error.Message == "" ||
				shape.Error.Type != "invalid_request_error" || shape.Error.Code == nil {
				t.Fatalf("%v in %s", err, a.body)
			}
			param := ""
			if shape.Error.Param != nil {
				param = *shape.Error.Param
			}
			if param != test.param || test.param != "" &&
				!strings.Contains(shape.Error.Message, strings.Split(test.param, ".")[0]) {
				t.Errorf("param %q, want %q: %s", param, test.param, shape.Error.Message)
			}
			if test.status == 404 && !strings.Contains(shape.Error.Message, "pocket") {
				t.Errorf("no list of models: %s", shape.Error.Message)
			}
		})
	}
	// Nothing is lost: the next request works.
	if r := s.ask(t, thinkingOff); *r.Choices[0].Message.Content != "Hello!" {
		t.Errorf("after the refusals: %+v", r)
	}
	if log := s.log.String(); strings.Contains(log, "Hello") || strings.Contains(log, "wizard") {
		t.Errorf("the log holds text of prompts or replies: %s", log)
	}
}

func TestHarmlessMembersAreAccepted(t *testing.T) {
	s := start(t, setup{})
	s.ask(t, `,"user":"u","metadata":{"a":"b"},"store":false,"service_tier":"auto","safety_identifier":"x","prompt_cache_key":"k",
		"prompt_cache_retention":"24h","prediction":{"type":"content","content":"x"},"verbosity":"medium","modalities":["text"],
		"response_format":{"type":"text"},"n":1,"functions":null,"stop":null,"tools":null,"logit_bias":{},"parallel_tool_calls":true,
		"temperature":null,"max_tokens":null,"stream":false,"logprobs":false,"audio":null,"anything":null`+thinkingOff)
	s.ask(t, `,"stop":["a","b"],"top_k":0,"min_p":0.1,"repetition_penalty":1.1,"frequency_penalty":0.5,"seed":-5,"logit_bias":{"17":-100}`+thinkingOff)
}

func TestBodyIsBounded(t *testing.T) {
	s := start(t, setup{bodyBytes: 10_000})
	a := s.post(t, chatPath, strings.Replace(chat(""), "Hi", strings.Repeat("x", 10_000), 1))
	if a.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(a.body), "10000 bytes") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	s.ask(t, "")
}

// Megabytes in one message are refused by what they must come to at least, while others are served.
func TestHugePromptIsNotCountedToItsEnd(t *testing.T) {
	s := start(t, setup{bodyBytes: 8 << 20})
	refused := func(body answer) {
		e := decode[reply](t, body.body).Error
		if body.status != 400 || e == nil || e.Code != "context_length_exceeded" ||
			!strings.Contains(e.Message, "has at least ") || !strings.Contains(e.Message, "the window holds 2048") {
			t.Errorf("status %d: %.300s", body.status, body.body)
		}
	}
	for _, piece := range []string{"word ", "a", "é", "<|im_end|>"} {
		huge := strings.Repeat(piece, 3<<20/len(piece))
		refused(s.post(t, chatPath, strings.Replace(chat(""), "Hi", huge, 1)))
		refused(s.post(t, textPath, `{"model":"pocket","prompt":"`+huge+`"}`))
	}
	// A large body that trickles in holds up no small one.
	body := strings.Replace(chat(""), "Hi", strings.Repeat("word ", 500_000), 1)
	slow, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprintf(slow, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "+
		"%d\r\n\r\n%s", chatPath, len(body), body[:2<<20])
	s.ask(t, thinkingOff)
	fmt.Fprint(slow, body[2<<20:])
	response, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	refused(answer{response.StatusCode, response.Header, raw})
}

func TestTextCompletion(t *testing.T) {
	s := start(t, setup{})
	s.say(" world, this is a reply of more than sixteen tokens, which is what a text completion gives unless it is " +
		"told otherwise.")
	ids, _ := json.Marshal(encode("Hello"))
	for name, prompt := range map[string]string{"text": `"Hello"`, "ids": string(ids), "list of one text": `["Hello"]`,
		"list of one id list": "[" + string(ids) + "]"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream %v", name, stream), func(t *testing.T) {
				body := fmt.Sprintf(`{"model":"pocket","prompt":%s,"logprobs":2,"stream":%v}`, prompt, stream)
				var text, finish string
				var points struct {
					Tokens        []string
					TokenLogprobs []float64            `json:"token_logprobs"`
					Top           []map[string]float64 `json:"top_logprobs"`
					Offset        []int                `json:"text_offset"`
				}
				if stream {
					for _, c := range s.open(t, t.Context(), textPath, body).all() {
						text += c.Choices[0].Text
						if c.Choices[0].FinishReason != nil {
							finish = *c.Choices[0].FinishReason
						}
					}
				} else {
					r := decode[reply](t, s.post(t, textPath, body).body)
					text, finish = r.Choices[0].Text, r.Choices[0].FinishReason
					if r.Object != "text_completion" || r.Usage.Prompt != len(encode("Hello")) ||
						r.Usage.Completion != 16 {
						t.Errorf("%s, usage %+v", r.Object, r.Usage)
					}
					if err := json.Unmarshal(r.Choices[0].Logprobs, &points); err != nil {
						t.Fatal(err)
					}
					if strings.Join(points.Tokens, "") != text || len(points.TokenLogprobs) != 16 ||
						len(points.Top[0]) != 2 || points.Offset[1] != len(points.Tokens[0]) {
						t.Errorf("%+v", points)
					}
				}
				if want := pocket().Tokenizer.Decode((*s.script.Load())[:16]); text != want || finish != "length" {
					t.Errorf("%q, %q; want %q", text, finish, want)
				}
			})
		}
	}
	r := decode[reply](t, s.post(t, textPath,
		`{"model":"pocket","prompt":"Hello","max_tokens":100,"stop":"more than"}`).body)
	if c := r.Choices[0]; c.Text != " world, this is a reply of " || c.FinishReason != "stop" {
		t.Errorf("stop: %+v", c)
	}
}

// OpenAI lists the token that was chosen among the likeliest whether it is one of them or not.
func TestChosenTokenIsInTopLogprobs(t *testing.T) {
	s := start(t, setup{})
	for _, n := range []int{0, 1, 5} {
		body := fmt.Sprintf(`{"model":"pocket","prompt":"Hello","max_tokens":40,"temperature":2,"top_p":1,"seed":3,"logprobs":%d}`, n)
		var points struct {
			Tokens        []string
			TokenLogprobs []float64            `json:"token_logprobs"`
			Top           []map[string]float64 `json:"top_logprobs"`
		}
		if err := json.Unmarshal(decode[reply](t, s.post(t, textPath, body).body).Choices[0].Logprobs,
			&points); err != nil {
			t.Fatal(err)
		}
		unlikely := 0
		for i, token := range points.Tokens {
			if got, there := points.Top[i][token]; !there || got != points.TokenLogprobs[i] || len(points.Top[i]) > n+
				1 {
				t.Errorf("logprobs %d: %q is not in %v", n, token, points.Top[i])
			}
			if len(points.Top[i]) == n+1 {
				unlikely++
			}
		}
		if unlikely == 0 {
			t.Errorf("logprobs %d: every token was a likeliest one; the test saw nothing", n)
		}
	}
}

func TestRawPromptGainsNoTokens(t *testing.T) {
	s := start(t, setup{})
	text := "<|endoftext|><|im_start|>user\nHi<|im_end|>\n"
	r := decode[reply](t, s.post(t, textPath, fmt.Sprintf(`{"model":"pocket","prompt":%q}`, text)).body)
	if want := len(encode(text)); r.Usage.Prompt != want || want > 12 {
		t.Errorf("%d tokens, want %d", r.Usage.Prompt, want)
	}
}
