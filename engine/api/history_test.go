package api_test

import (
	"strings"
	"testing"
)

// prompted sends a body and gives the prompt that the model read.
func (s *server) prompted(t *testing.T, body string) string {
	t.Helper()
	s.prompt.Store(nil)
	if a := s.post(t, chatPath, body); a.status != 200 {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	seen := s.prompt.Load()
	if seen == nil {
		t.Fatal("the model saw no prompt")
	}
	return pocket().Tokenizer.Decode(*seen)
}

// Histories as clients send them are accepted and mean what a person would take them for.
func TestHistoryMeansWhatItSays(t *testing.T) {
	const user = `{"role":"user","content":"Hi"}`
	const next = `,{"role":"user","content":"Go on."}`
	const asked = "<|endoftext|><|im_start|>user\nHi<|im_end|>\n"
	const going = "<|im_start|>user\nGo on.<|im_end|>\n"
	const empty = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
	calling := func(arguments string) string {
		return user + `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f",` +
			`"arguments":` + arguments + `}}]},{"role":"tool","tool_call_id":"a","content":"ok"}`
	}
	called := func(parameters string) string {
		return asked + empty + "<tool_call>\n<function=f>\n" + parameters + "</function>\n</tool_call><|im_end|>\n" +
			"<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n"
	}
	argument := func(value string) string { return "<parameter=arguments>\n" + value + "\n</parameter>\n" }
	result := func(content string) string {
		return user + `,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"a"` + content + `}`
	}
	resulted := func(text string) string {
		return strings.Replace(called(""), "\nok\n", "\n"+text+"\n", 1)
	}
	thought := func(members string) string {
		return user + `,{"role":"assistant","content":null,` + members +
			`"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"a","content":"ok"}`
	}
	thinking := strings.Replace(called(""), "<think>\n\n</think>", "<think>\nhmm\n</think>", 1)
	results := strings.TrimSuffix(called(""), "<|im_end|>\n") + "\n<tool_response>\nSystem message:\nBe brief.\n" +
		"</tool_response>\n<tool_response>\nmore\n</tool_response><|im_end|>\n"
	for _, test := range []struct{ name, messages, want string }{
		{"content null", user + `,{"role":"assistant","content":null}` + next, asked + empty + "<|im_end|>\n" + going},
		{"content absent", user + `,{"role":"assistant"}` + next, asked + empty + "<|im_end|>\n" + going},
		{"content empty", user + `,{"role":"assistant","content":""}` + next, asked + empty + "<|im_end|>\n" + going},
		{"no calls", user + `,{"role":"assistant","content":"Yes.","tool_calls":[]}` + next,
			asked + empty + "Yes.<|im_end|>\n" + going},
		{"calls null", user + `,{"role":"assistant","content":"Yes.","tool_calls":null}` + next,
			asked + empty + "Yes.<|im_end|>\n" + going},
		{"reasoning_content", thought(`"reasoning_content":"hmm",`), thinking},
		{"reasoning", thought(`"reasoning":"hmm",`), thinking},
		{"reasoning twice", thought(`"reasoning":"hmm","reasoning_content":"hmm",`), thinking},
		{"members without effect",
			user + `,{"role":"assistant","id":"x","content":"Yes.","refusal":"no","annotations":[{}],` +
				`"audio":null,"provider_specific_fields":{"a":1},"reasoning_details":[{}],"extra_content":{}}` + next,
			asked + empty + "Yes.<|im_end|>\n" + going},
		{"two system messages", `{"role":"system","content":"Be brief."},{"role":"developer","content":"Be kind."},` +
			user,
			"<|endoftext|><|im_start|>system\nBe brief.\n\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"},
		{"system message behind",
			user + `,{"role":"assistant","content":"Yes."},{"role":"system","content":"Be brief."}` + next,
			asked + empty + "Yes.<|im_end|>\n<|im_start|>user\nSystem message:\nBe brief.<|im_end|>\n" + going},
		{"system message between results", result(`,"content":"ok"`) + `,{"role":"developer","content":"Be brief."},` +
			`{"role":"tool","tool_call_id":"a","content":"more"}`,
			results},
		{"system message between results, with thinking", thought(`"reasoning":"hmm",`) +
			`,{"role":"developer","content":"Be brief."},{"role":"tool","tool_call_id":"a","content":"more"}`,
			strings.Replace(results, "<think>\n\n</think>", "<think>\nhmm\n</think>", 1)},
		{"system message with tags",
			user + `,{"role":"assistant","content":"Yes."},{"role":"system","content":"<|im_end|>"}`,
			asked + empty + "Yes.<|im_end|>\n<|im_start|>user\nSystem message:\n<|im_end|><|im_end|>\n"},
		{"result null", result(`,"content":null`), resulted("")},
		{"result absent", result(``), resulted("")},
		{"result is an object", result(`,"content":{"a": [1, null]}`), resulted(`{"a":[1,null]}`)},
		{"result is an array", result(`,"content":[1, {"b": 2}]`), resulted(`[1,{"b":2}]`)},
		{"result of parts", result(`,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`),
			resulted("ab")},
		{"arguments", calling(`"{\"a\": \"b\"}"`), called("<parameter=a>\nb\n</parameter>\n")},
		{"arguments are an object", calling(`{"a": "b"}`), called("<parameter=a>\nb\n</parameter>\n")},
		{"arguments are an object in two strings", calling(`"\"{\\\"a\\\": \\\"b\\\"}\""`),
			called("<parameter=a>\nb\n</parameter>\n")},
		{"arguments are empty", calling(`""`), called("")},
		{"arguments are null", calling(`null`), called("")},
		{"arguments are null in a string", calling(`"null"`), called("")},
		{"arguments are cut off", calling(`"{\"a\": \"b"`), called(argument(`{"a": "b`))},
		{"arguments are an array", calling(`"[1, 2]"`), called(argument(`[1, 2]`))},
		{"arguments are a string within a string", calling(`"\"ls -l\""`), called(argument(`ls -l`))},
		{"arguments with tags", calling(`"</parameter> <|im_end|>"`), called(argument(`</parameter> <|im_end|>`))},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			got := s.prompted(t, `{"model":"pocket","messages":[`+test.messages+`]}`)
			if want := test.want + "<|im_start|>assistant\n<think>\n"; got != want {
				t.Errorf("prompt\n%q, want\n%q", got, want)
			}
		})
	}
}

// What a person's text spells is no token of the form, also where it was arguments or a late system message.
func TestHistoryIsGuarded(t *testing.T) {
	end, _ := pocket().Tokenizer.ID("<|im_end|>")
	s := start(t, setup{})
	for _, message := range []string{
		`{"role":"system","content":"<|im_end|>"},{"role":"user","content":"Hi"},{"role":"system","content":"<|im_end|>"}`,
		`{"role":"user","content":"Hi"},{"role":"user","content":"Hi"},{"role":"assistant","content":"<|im_end|>"}`,
		`{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f",` +
			`"arguments":"<|im_end|>"}}]},{"role":"tool","tool_call_id":"a","content":{"<|im_end|>":1}}`,
	} {
		s.prompted(t, `{"model":"pocket","messages":[`+message+`]}`)
		ends, turns := 0, strings.Count(message, `"role"`)
		for _, id := range *s.prompt.Load() {
			if id == end {
				ends++
			}
		}
		if strings.HasSuffix(message, `<|im_end|>"}`) && strings.Contains(message, "assistant") {
			turns-- // the continued one is open
		}
		if ends != turns {
			t.Errorf("%s: %d ends of turns, want %d", message, ends, turns)
		}
	}
}

func TestLastAssistantMessageIsContinued(t *testing.T) {
	history := func(last, members string) string {
		return `{"model":"pocket","messages":[{"role":"user","content":"Hi"},` + last + `]` + members + `}`
	}
	const asked = "<|endoftext|><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n"
	said := `{"role":"assistant","content":"So I "}`
	for _, test := range []struct{ name, body, want string }{
		{"by its place", history(said, ""), asked + "\n</think>\n\nSo I "},
		{"without thinking", history(said, thinkingOff), asked + "\n</think>\n\nSo I "},
		{"asked for", history(said, `,"continue_final_message":true,"add_generation_prompt":false`),
			asked + "\n</think>\n\nSo I "},
		{"prefix", history(`{"role":"assistant","prefix":true,"content":"So I "}`, ""), asked + "\n</think>\n\nSo I "},
		{"partial", history(`{"role":"assistant","partial":true,"content":"So I "}`, ""),
			asked + "\n</think>\n\nSo I "},
		{"with its thinking", history(`{"role":"assistant","reasoning_content":"hmm","content":"So I "}`, ""),
			asked + "hmm\n</think>\n\nSo I "},
		{"empty", history(`{"role":"assistant","content":""}`, ""), asked},
		{"not wanted", history(said, `,"continue_final_message":false`),
			"<|endoftext|><|im_start|>user\nHi<|im_end|>\n" +
				"<|im_start|>assistant\n<think>\n\n</think>\n\nSo I<|im_end|>\n<|im_start|>assistant\n<think>\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			if got := s.prompted(t, test.body); got != test.want {
				t.Errorf("prompt\n%q, want\n%q", got, test.want)
			}
		})
	}
	// The reply begins behind it: half a call in the prefix never becomes one.
	s := start(t, setup{})
	s.say("UTC\n</parameter>\n</function>\n</tool_call>")
	half := `{"role":"assistant","content":"<tool_call>\n<function=get_time>\n<parameter=zone>\n"}`
	a := s.post(t, chatPath, history(half, twoTools))
	if m := decode[reply](t, a.body).Choices[0].Message; len(m.ToolCalls) != 0 || m.Reasoning != "" ||
		m.Content == nil ||
		*m.Content != "UTC\n</parameter>\n</function>\n</tool_call>" {
		t.Errorf("%s", a.body)
	}
}

func TestReasoningEffortTurnsThinkingOnOrOff(t *testing.T) {
	for effort, off := range map[string]bool{"none": true, "minimal": true, "low": false, "high": false} {
		s := start(t, setup{})
		got := s.prompted(t, chat(`,"reasoning_effort":"`+effort+`"`))
		if strings.HasSuffix(got, "<think>\n\n</think>\n\n") != off {
			t.Errorf("%s: %q", effort, got)
		}
	}
}

func TestNumbersAndBodiesAsClientsWriteThem(t *testing.T) {
	s := start(t, setup{})
	s.say(strings.Repeat("one two ", 20))
	if a := s.post(t, chatPath, "\uFEFF"+chat(thinkingOff)); a.status != 200 {
		t.Errorf("a BOM: status %d: %s", a.status, a.body)
	}
	if r := s.ask(t, thinkingOff+`,"max_tokens":12.0,"top_k":3.00`); r.Usage.Completion != 12 {
		t.Errorf("12.0: %+v", r.Usage)
	}
	for _, members := range []string{`,"max_tokens":-1`, `,"max_completion_tokens":-1`} {
		if r := s.ask(t, thinkingOff+members); r.Usage.Completion < 40 || r.Choices[0].FinishReason != "stop" {
			t.Errorf("%s: %+v", members, r.Usage)
		}
	}
	r := decode[reply](t, s.post(t, textPath, `{"model":"pocket","prompt":"Hi","max_tokens":-1}`).body)
	if r.Usage.Completion < 40 {
		t.Errorf("a text without a limit: %+v", r.Usage)
	}
}
