package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"slipway/engine/text"
)

// schemaOf gives the members that ask for a schema.
func schemaOf(schema string) string {
	return `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + schema + `}}`
}

const person = `{"type":"object","properties":{"name":{"type":"string","maxLength":20},"age":{"type":"integer"}},
	"required":["name","age"],"additionalProperties":false}`

func TestReplyIsHeldToItsFormat(t *testing.T) {
	const off = thinkingOff
	for _, c := range []struct{ name, script, members, content, reasoning string }{
		{"a model that keeps to it", `{"name": "Ada", "age": 36}`, schemaOf(person) + off, `{"name": "Ada", "age": 36}`, ""},
		{"one of two words, whatever the model says", "Sure: yes!", schemaOf(`{"enum":["yes"]}`) + off, `"yes"`, ""},
		{"behind thinking", "An {age} is asked.\n</think>\n\n{\"name\":\"Ada\",\"age\":36}",
			schemaOf(person) + `,"chat_template_kwargs":{"enable_thinking":true}`, `{"name":"Ada","age":36}`,
			"An {age} is asked."},
		{"stop texts do not cut it", `{"name":"Ada","age":36}`, schemaOf(person) + `,"stop":["Ada",":"]` + off,
			`{"name":"Ada","age":36}`, ""},
		{"any object", `{"a":[1,{"b":null}]}`, `,"response_format":{"type":"json_object"}` + off, `{"a":[1,{"b":null}]}`, ""},
		{"text", "No JSON.", `,"response_format":{"type":"text"}` + off, "No JSON.", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, setup{})
			s.say(c.script)
			r := s.ask(t, c.members+`,"temperature":0`)
			m := r.Choices[0].Message
			if m.Content == nil || *m.Content != c.content || m.Reasoning != c.reasoning ||
				r.Choices[0].FinishReason != "stop" {
				t.Errorf("%+v, content %q", r, *m.Content)
			}
			if got := s.stream(t, c.members+`,"temperature":0`); got.content != c.content || got.thinking != c.reasoning {
				t.Errorf("streamed: %+v", got)
			}
		})
	}
}

// A reply may spell out a tag by ordinary tokens: it is text of its string then, and stays.
func TestTagsInAStringOfAFormatStay(t *testing.T) {
	s := start(t, setup{})
	const said = `{"name":"<think></think>","age":1}`
	ids := pocket().Tokenizer.Encode(said, text.EncodeOptions{})
	s.script.Store(&ids)
	if r := s.ask(t, schemaOf(person)+thinkingOff); *r.Choices[0].Message.Content != said {
		t.Errorf("%q", *r.Choices[0].Message.Content)
	}
}

// A model that may call a tool or answer does either.
func TestReplyWithAFormatMayBeACall(t *testing.T) {
	s := start(t, setup{})
	members := twoTools + schemaOf(person) + thinkingOff + `,"temperature":0`
	s.say("<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>")
	r := s.ask(t, members)
	if calls := r.Choices[0].Message.ToolCalls; len(calls) != 1 || calls[0].Function.Name != "get_weather" {
		t.Errorf("%+v", r)
	}
	s.say(`{"name":"Ada","age":36}`)
	if r := s.ask(t, members); r.Choices[0].Message.Content == nil ||
		*r.Choices[0].Message.Content != `{"name":"Ada","age":36}` {
		t.Errorf("%+v", r)
	}
}

// What ends by itself is whole, also at any temperature; what max_tokens cuts says so.
func TestRepliesOfARestlessModelFulfilTheirSchema(t *testing.T) {
	s := start(t, setup{})
	s.say("Well, let me see. ")
	whole := 0
	for seed := range 12 {
		r := s.ask(t, schemaOf(`{"type":"object","properties":{"ok":{"type":"boolean"},"n":{"type":"integer","minimum":3,
			"maximum":9},"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":3}},"required":["ok","n","tags"],
			"additionalProperties":false}`)+thinkingOff+`,"max_tokens":300,"temperature":2,"seed":`+string(rune('0'+seed%10)))
		choice := r.Choices[0]
		if choice.FinishReason == "length" {
			continue
		}
		whole++
		var v struct {
			OK   *bool
			N    int
			Tags []string
		}
		d := json.NewDecoder(strings.NewReader(*choice.Message.Content))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil || v.OK == nil || v.N < 3 || v.N > 9 || len(v.Tags) > 3 || d.More() {
			t.Errorf("%q: %v", *choice.Message.Content, err)
		}
	}
	if whole < 6 {
		t.Errorf("only %d of 12 replies ended", whole)
	}
}

// Each of several replies is held for itself.
func TestSeveralRepliesKeepTheirFormat(t *testing.T) {
	s := start(t, setup{queue: 4}) // two run at a time
	s.say("Well, let me see. ")
	r := s.ask(t, schemaOf(person)+thinkingOff+`,"n":3,"max_tokens":400,"temperature":1.5,"seed":5`)
	if len(r.Choices) != 3 {
		t.Fatalf("%+v", r)
	}
	for _, c := range r.Choices {
		if c.FinishReason == "stop" && !json.Valid([]byte(*c.Message.Content)) {
			t.Errorf("%q", *c.Message.Content)
		}
	}
}

// Every wire has its own member for a schema, and the reply keeps to it.
func TestFormatsOfOtherWires(t *testing.T) {
	s := start(t, setup{})
	s.say("Sure: yes!")
	for _, c := range []struct{ path, body, content string }{
		{"/v1/responses", `{"model":"pocket","input":"Hi","reasoning":{"effort":"none"},"text":{"format":{"type":"json_schema",
			"name":"n","schema":{"enum":["yes"]}}}}`, `"text":"\"yes\""`},
		{"/v1/messages", `{"model":"pocket","max_tokens":50,"messages":[{"role":"user","content":"Hi"}],"output_format":
			{"type":"json_schema","schema":{"enum":["yes"]}}}`, `"text":"\"yes\""`},
		{"/api/chat", `{"model":"pocket","stream":false,"think":false,"messages":[{"role":"user","content":"Hi"}],"format":
			{"enum":["yes"]}}`, `"content":"\"yes\""`},
	} {
		if a := s.post(t, c.path, c.body); a.status != 200 || !strings.Contains(string(a.body), c.content) {
			t.Errorf("%s: status %d: %s", c.path, a.status, a.body)
		}
	}
}
