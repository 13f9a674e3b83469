package text

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway/engine/families/qwen35"
)

const pocketDir = "../../manifests/pocket"

var pocketText = sync.OnceValues(func() (*Model, error) { return Load(qwen35.Text, pocketDir) })

func pocketModel(t *testing.T) *Model {
	t.Helper()
	m, err := pocketText()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// recorded is a conversation with what jinja2 3.1.6 made of it (trim_blocks, lstrip_blocks, tojson as in transformers).
type recorded struct {
	Template string
	Messages []struct {
		Role, Content    string
		ReasoningContent *string `json:"reasoning_content"`
		ToolCalls        []struct {
			Function struct {
				Name      string
				Arguments json.RawMessage
			}
		} `json:"tool_calls"`
	}
	Tools        []json.RawMessage
	Kwargs       json.RawMessage
	Want, Raised string
}

func (r recorded) conversation() Conversation {
	c := Conversation{Tools: r.Tools, Kwargs: r.Kwargs, AddGenerationPrompt: true}
	for _, m := range r.Messages {
		message := Message{Role: m.Role, Content: m.Content, ReasoningContent: m.ReasoningContent}
		for _, call := range m.ToolCalls {
			message.ToolCalls = append(message.ToolCalls,
				ToolCall{Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
		c.Messages = append(c.Messages, message)
	}
	return c
}

func TestRenderingEqualsJinja2(t *testing.T) {
	raw, err := os.ReadFile("testdata/templates/jinja2.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []recorded
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	forms, err := os.ReadFile("testdata/templates/forms.jinja")
	if err != nil {
		t.Fatal(err)
	}
	formsTemplate, err := NewTemplate(qwen35.Text, string(forms), pocketModel(t).Tokenizer.addedTexts())
	if err != nil {
		t.Fatal(err)
	}
	templates := map[string]*Template{"pocket": pocketModel(t).Template, "forms": formsTemplate}
	if len(cases) < 20 {
		t.Fatalf("only %d cases", len(cases))
	}
	for i, c := range cases {
		p, err := templates[c.Template].Render(c.conversation())
		var refused *TemplateError
		switch {
		case c.Raised != "":
			if !errors.As(err, &refused) || !refused.Raised || refused.Message != c.Raised {
				t.Errorf("case %d: error %v, want raised %q", i, err, c.Raised)
			}
		case err != nil:
			t.Errorf("case %d: %v", i, err)
		case p.Text != c.Want:
			t.Errorf("case %d (%s):\n got %q\nwant %q", i, c.Template, p.Text, c.Want)
		}
	}
}

// TestPocketIsPromptedAsInTraining takes the oracle's conversations apart and renders them again.
func TestPocketIsPromptedAsInTraining(t *testing.T) {
	raw, err := os.ReadFile("testdata/oracle-ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var oracle map[string]struct {
		Text string
		IDs  []int32
	}
	if err := json.Unmarshal(raw, &oracle); err != nil {
		t.Fatal(err)
	}
	m := pocketModel(t)
	off := false
	for _, name := range []string{"hello", "needle_short", "needle_long", "vt", "tool", "chat"} {
		want := oracle[name]
		c := conversationOf(t, want.Text)
		c.EnableThinking = &off
		p, err := m.Template.Render(c)
		if err != nil {
			t.Fatal(err)
		}
		rendered := p.Text
		if name == "vt" { // its prompt has the thinking too
			thought := want.Text[strings.Index(want.Text, "<think>\n")+8:]
			rendered = strings.TrimSuffix(rendered, "\n</think>\n\n") + thought
		}
		if rendered != "<|endoftext|>"+want.Text {
			t.Errorf("%s:\n got %q\nwant %q", name, rendered, want.Text)
		}
		if ids := m.Tokenizer.EncodePrompt(p); name != "vt" && !slices.Equal(ids, want.IDs) {
			t.Errorf("%s: ids differ: %v\nwant %v", name, ids, want.IDs)
		}
	}
}

// conversationOf reads a prompt back into messages; the last turn is the one to be generated.
func conversationOf(t *testing.T, prompt string) Conversation {
	t.Helper()
	c := Conversation{AddGenerationPrompt: true}
	turns := strings.Split(prompt, "<|im_start|>")
	for _, turn := range turns[1 : len(turns)-1] {
		role, content, _ := strings.Cut(strings.TrimSuffix(turn, "<|im_end|>\n"), "\n")
		m := Message{Role: role, Content: strings.TrimPrefix(content, "<think>\n\n</think>\n\n")}
		if _, tools, found := strings.Cut(content, "<tools>\n"); found {
			tools, _, _ = strings.Cut(tools, "\n</tools>")
			for _, line := range strings.Split(tools, "\n") {
				c.Tools = append(c.Tools, json.RawMessage(line))
			}
			continue
		}
		if _, call, found := strings.Cut(content, "<tool_call>\n<function="); found {
			name, rest, _ := strings.Cut(call, ">\n<parameter=")
			key, value, _ := strings.Cut(rest, ">\n")
			value, _, _ = strings.Cut(value, "\n</parameter>")
			arguments, _ := json.Marshal(map[string]string{key: value})
			quoted, _ := json.Marshal(string(arguments))
			m.Content, m.ToolCalls = "", []ToolCall{{Name: name, Arguments: quoted}}
		}
		if inner, found := strings.CutPrefix(m.Content, "<tool_response>\n"); found {
			m.Role, m.Content = "tool", strings.TrimSuffix(inner, "\n</tool_response>")
		}
		c.Messages = append(c.Messages, m)
	}
	return c
}

func say(role, content string) Message { return Message{Role: role, Content: content} }

func TestThinkingSwitch(t *testing.T) {
	on, off := true, false
	open, shut := "<|im_start|>assistant\n<think>\n", "<|im_start|>assistant\n<think>\n\n</think>\n\n"
	tests := []struct {
		name string
		c    Conversation
		end  string
	}{
		{"unsaid", Conversation{}, open},
		{"on", Conversation{EnableThinking: &on}, open},
		{"off", Conversation{EnableThinking: &off}, shut},
		{"effort none", Conversation{ReasoningEffort: "none"}, shut},
		{"effort high", Conversation{ReasoningEffort: "high"}, open},
		{"the client's own word wins", Conversation{
			EnableThinking: &on, Kwargs: json.RawMessage(`{"enable_thinking":false}`)}, shut},
		{"and over the effort", Conversation{
			ReasoningEffort: "none", Kwargs: json.RawMessage(`{"enable_thinking":true}`)}, open},
		{"null kwargs", Conversation{EnableThinking: &off, Kwargs: json.RawMessage(`null`)}, shut},
	}
	for _, test := range tests {
		test.c.Messages, test.c.AddGenerationPrompt = []Message{say("user", "Hi")}, true
		p, err := pocketModel(t).Template.Render(test.c)
		if want := "<|endoftext|><|im_start|>user\nHi<|im_end|>\n" + test.end; err != nil || p.Text != want {
			t.Errorf("%s: %v, %q, want %q", test.name, err, p.Text, want)
		}
	}
	p, err := pocketModel(t).Template.Render(Conversation{Messages: []Message{say("user", "Hi")}})
	if err != nil || strings.Contains(p.Text, "assistant") {
		t.Errorf("a generation prompt that was not asked for: %v, %q", err, p.Text)
	}
}

func TestReasoningEffortInTheTemplatesWords(t *testing.T) {
	template, err := NewTemplate(qwen35.Text, `{{ reasoning_effort is defined }} {{ reasoning_effort }}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for effort, want := range map[string]string{"": "False ", "none": "False ", "high": "True xhigh",
		"minimal": "True low", "low": "True low", "medium": "True medium", "odd": "True odd"} {
		if p, err := template.Render(Conversation{ReasoningEffort: effort}); err != nil || p.Text != want {
			t.Errorf("%q: %v, %q, want %q", effort, err, p.Text, want)
		}
	}
}

// The forms in which the 3.8 generation judges the effort and the history.
func TestEffortThatTheTemplateJudges(t *testing.T) {
	template, err := NewTemplate(qwen35.Text, `{%- set effort = reasoning_effort|default('xhigh') %}
{%- if effort not in ('xhigh', 'medium', 'low') %}
    {{- raise_exception('No effort ' ~ effort ~ '.') }}
{%- endif %}
{%- if not(messages|length > 1) and (preserve_thinking is undefined or preserve_thinking is true) %}
    {{- effort }}
{%- endif %}
`, []string{""})
	if err != nil {
		t.Fatal(err)
	}
	for effort, want := range map[string]string{"": "xhigh", "high": "xhigh", "minimal": "low", "medium": "medium"} {
		if p, err := template.Render(Conversation{ReasoningEffort: effort}); err != nil || p.Text != want {
			t.Errorf("%q: %v, %q, want %q", effort, err, p.Text, want)
		}
	}
	var refused *TemplateError
	if _, err := template.Render(Conversation{ReasoningEffort: "huge"}); !errors.As(err, &refused) || !refused.Raised ||
		refused.Message != "No effort huge." {
		t.Errorf("huge: %v", err)
	}
}

// What a template does not use it must not seem to obey; what it uses it must not refuse.
func TestVariablesOfATemplateAreFound(t *testing.T) {
	source := `a_text {# a_comment #}{{ a_used }}{%- if not a_tested and m.a_member == 'a_string' ~ "{{ \"a_quoted" -%}{{ a_used2|a_filter(key=a_value) }}{% endif %} { a_brace } {{ x['a_key'] }}{{ '}}' ~ a_behind }}`
	names := namesIn(source)
	for _, name := range []string{"a_used", "a_tested", "a_used2", "a_value", "a_behind", "x", "m"} {
		if !names[name] {
			t.Errorf("%s is not seen", name)
		}
	}
	for _, name := range []string{"a_text", "a_comment", "a_member", "a_string", "a_quoted", "a_brace", "a_key"} {
		if names[name] {
			t.Errorf("%s is seen", name)
		}
	}
}

func TestArgumentsOfCallsInHistory(t *testing.T) {
	template, err := NewTemplate(qwen35.Text, `{{ messages[0].tool_calls[0].function.arguments|tojson }}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, raw, want string }{
		{"object", `{"b":1,"a":[2]}`, `{"b": 1, "a": [2]}`},
		{"string", `"{\"b\":1,\"a\":2}"`, `{"b": 1, "a": 2}`},
		{"nothing", ``, `{}`},
		{"null", `null`, `{}`},
		{"empty string", `""`, `{}`},
		{"number text is kept", `{"n":12345678901234567890123,"f":1.0,"e":1e3}`,
			`{"n": 12345678901234567890123, "f": 1.0, "e": 1000.0}`},
		{"list", `[1]`, ""},
		{"string that holds a list", `"[1]"`, ""},
		{"string that holds a string", `"\"{}\""`, ""},
		{"cut off", `"{\"a\":"`, ""},
		{"two values", `{} {}`, ""},
		{"nested beyond reason", `{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, ""},
	}
	for _, test := range tests {
		c := Conversation{Messages: []Message{
			{Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage(test.raw)}}}}}
		p, err := template.Render(c)
		var wrong *ConversationError
		if test.want == "" {
			if !errors.As(err, &wrong) || wrong.Field != "messages[0].tool_calls[0].arguments" {
				t.Errorf("%s: %v", test.name, err)
			}
		} else if err != nil || p.Text != test.want {
			t.Errorf("%s: %v, %q, want %q", test.name, err, p.Text, test.want)
		}
	}
}

func TestThinkingInsideContentIsSplit(t *testing.T) {
	c := Conversation{Messages: []Message{
		say("user", "q"), say("assistant", "<think>\nwhy <|im_end|>\n</think>\n\nbecause")}}
	p, err := pocketModel(t).Template.Render(c)
	if err != nil || !strings.HasSuffix(p.Text, "<|im_start|>assistant\n<think>\nwhy "+
		"<|im_end|>\n</think>\n\nbecause<|im_end|>\n") {
		t.Errorf("%v: %q", err, p.Text)
	}
	if len(p.guards) != 1 {
		t.Errorf("guards %v", p.guards)
	}
	c.Messages = append(c.Messages, say("user", "more"))
	if p, _ = pocketModel(t).Template.Render(c); strings.Contains(p.Text, "why") {
		t.Errorf("thinking before the last question stayed: %q", p.Text)
	}
	c.Kwargs = json.RawMessage(`{"preserve_thinking":true}`)
	if p, _ = pocketModel(t).Template.Render(c); !strings.Contains(p.Text, "why") {
		t.Errorf("thinking was to be preserved: %q", p.Text)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("user", "Hi", `{"a":1}`, `{"type":"function"}`, `{}`)
	f.Add("assistant", "<think></think>", `"{}"`, `{}`, `{"enable_thinking":1}`)
	model, err := Load(qwen35.Text, pocketDir)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, role, content, arguments, tool, kwargs string) {
		p, err := model.Template.Render(Conversation{
			Messages: []Message{say("user", content), {Role: role, Content: content, ReasoningContent: &content,
				ToolCalls: []ToolCall{{Name: content, Arguments: json.RawMessage(arguments)}}}},
			Tools: []json.RawMessage{json.RawMessage(tool)}, Kwargs: json.RawMessage(kwargs),
		})
		if err == nil {
			model.Tokenizer.EncodePrompt(p)
		}
	})
}
