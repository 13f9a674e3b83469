package qwen35

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"slipway/engine/text/family"
)

var parserTools = []json.RawMessage{
	json.RawMessage(`{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{
		"city":{"type":"string"},"days":{"type":"integer"},"wind":{"type":"number"},"now":{"type":"boolean"},"where":{"type":"object"},
		"tags":{"type":"array"},"maybe":{"type":["string","null"]},"either":{"anyOf":[{"type":"integer"},{"type":"string"}]},
		"named":{"$ref":"#/$defs/Point"},"loop":{"$ref":"#/properties/loop"},"any":{},"mode":{"enum":["a","b"]},"level":{"enum":[1,2]}},
		"$defs":{"Point":{"type":"object"}}}}}`),
	json.RawMessage(`{"type":"function","function":{"name":"now"}}`),
	json.RawMessage(`not JSON`),
}

// script joins events as a client would: R(thinking) C(content) name(arguments), each call closed by ")" if it ended.
func script(events []family.Event) string {
	var out strings.Builder
	var last family.EventKind = -1
	for _, e := range events {
		switch e.Kind {
		case family.ReasoningDelta, family.ContentDelta:
			if e.Text == "" {
				out.WriteString("EMPTY")
			}
			if last != e.Kind {
				out.WriteString([]string{" R:", " C:"}[e.Kind])
			}
			out.WriteString(e.Text)
		case family.ToolCallStart:
			fmt.Fprintf(&out, " %d:%s(", e.Index, e.Name)
		case family.ToolCallArguments:
			out.WriteString(e.Text)
		case family.ToolCallEnd:
			out.WriteString(")")
		}
		last = e.Kind
	}
	return strings.TrimPrefix(out.String(), " ")
}

func parse(opt family.ParserOptions, pieces ...string) string {
	p := NewOutputParser(opt)
	var events []family.Event
	for _, piece := range pieces {
		events = append(events, p.Push(piece)...)
	}
	s := script(append(events, p.Close()...))
	if p.Unfinished() {
		s += "…"
	}
	return s
}

func call(name string, pairs ...string) string {
	s := "<tool_call>\n<function=" + name + ">\n"
	for i := 0; i < len(pairs); i += 2 {
		s += "<parameter=" + pairs[i] + ">\n" + pairs[i+1] + "\n</parameter>\n"
	}
	return s + "</function>\n</tool_call>"
}

var replies = []struct {
	name     string
	thinking bool
	noTools  bool
	reply    string
	want     string
}{
	{"content alone", false, false, "Hello!", "C:Hello!"},
	{"nothing", false, false, "", ""},
	{"thinking, then content", true, false, "I greet.\n</think>\n\nHello!", "R:I greet. C:Hello!"},
	{"thinking alone", true, false, "I think\n\nand", "R:I think\n\nand"},
	{"thinking cut inside its end", true, false, "I think\n</thi", "R:I think\n</thi"},
	{"no thought at all", true, false, "\n</think>\n\nHello!", "C:Hello!"},
	{"think end without newlines", true, false, "a</think>b", "R:a C:b"},
	{"repeated think", true, false, "<think>\nI greet.\n</think>\n\nHello!", "R:I greet. C:Hello!"},
	{"think twice repeated", true, false, "\n<think><think>a</think>b", "R:a C:b"},
	{"think inside thinking is a word", true, false, "the tag <think> is\n</think>x", "R:the tag <think> is C:x"},
	{"model opens thinking itself", false, false, "<think>\na\n</think>\n\nb", "R:a C:b"},
	{"think inside content is a word", false, false, "the tag <think> and </think>", "C:the tag <think> and </think>"},
	{"thinking again after thinking", true, false, "a</think>\n\n<think>\nb\n</think>\n\nc", "R:ab C:c"},
	{"newlines inside content stay", false, false, "\na\n\n\nb\n", "C:\na\n\n\nb\n"},
	{"newlines after thinking go", true, false, "a\n</think>\n\n\n", "R:a"},
	{"less-than signs", false, false, "a < b << c <t <tool <tool_call < x", "C:a < b << c <t <tool <tool_call < x"},
	{"call", false, false, call("get_weather", "city", "Oslo", "days", "3"), `0:get_weather({"city":"Oslo","days":3})`},
	{"content, two calls", false, false, "I look.\n\n" + call("get_weather", "city", "Oslo") + "\n" + call("now"),
		`C:I look. 0:get_weather({"city":"Oslo"}) 1:now({})`},
	{"content after a call", false, false, call("now") + "\n\nDone.", `0:now({}) C:Done.`},
	{"two functions in one block", false, false,
		"<tool_call>\n<function=now>\n</function>\n<function=now>\n</function>\n</tool_call>", `0:now({}) 1:now({})`},
	{"block that never ends", false, false, "<tool_call>\n<function=now>\n</function>\nwell", `0:now({}) C:well`},
	{"function that never ends", false, false, "<tool_call>\n<function=now>\n</tool_call>\nwell", `0:now({}) C:well`},
	{"call without a think end", true, false, "I call.\n" + call("now"), `R:I call. 0:now({})`},
	{"call after thinking", true, false, "I call.\n</think>\n\n" + call("now"), `R:I call. 0:now({})`},
	{"forced while thinking", true, false, "\n</think>\n\n" + call("now"), `0:now({})`},
	{"tag named in thinking", true, false, "with <tool_call> I may\n</think>x", "R:with <tool_call> I may C:x"},
	{"tag named in content", false, false, "a <tool_call>\n is a tag", "C:a <tool_call>\n is a tag"},
	{"JSON in a call's tag", false, false, "<tool_call>\n{\"name\":\"now\"}\n</tool_call>",
		"C:<tool_call>\n{\"name\":\"now\"}\n</tool_call>"},
	{"function without a name", false, false, "<tool_call>\n<function=>\n", "C:<tool_call>\n<function=>\n"},
	{"name that runs on", false, false, "<tool_call><function=a\nb>", "C:<tool_call><function=a\nb>"},
	{"very long name", false, false, "<tool_call><function=" + strings.Repeat("n", 300) + ">",
		"C:<tool_call><function=" + strings.Repeat("n", 300) + ">"},
	{"no tools, tags are text", false, true, call("now"), "C:" + call("now")},
	{"no tools, thinking", true, true, "a <tool_call>\n<function=now>\n</think>b",
		"R:a <tool_call>\n<function=now> C:b"},
	{"unknown tool", false, false, call("other", "x", "1"), `0:other({"x":"1"})`},
	{"unknown parameter", false, false, call("get_weather", "x", "1"), `0:get_weather({"x":"1"})`},
	{"text between parameters", false, false, "<tool_call><function=get_weather>so <b> " +
		"<parameter=city>a</parameter>, and <parameter=days>1</parameter>.</function></tool_call>",
		`0:get_weather({"city":"a","days":1})`},
	{"cut in the tag", false, false, "a\n<tool_ca", "C:a\n<tool_ca"},
	{"cut before the name", false, false, "a\n<tool_call>\n<function=get_", "C:a…"},
	{"cut before the function", false, false, "a\n<tool_call>\n<func", "C:a…"},
	{"cut after the tag", false, false, "a\n<tool_call>\n", "C:a…"},
	{"cut after the tag, while thinking", true, false, "a\n<tool_call>", "R:a…"},
	{"tag without a function after a call", false, false, call("now") + "\n<tool_call>\n", "0:now({})…"},
	{"cut after the name", false, false, "<tool_call>\n<function=now>\n", "0:now(…"},
	{"cut in a parameter's name", false, false, "<tool_call>\n<function=now>\n<parameter=ci", "0:now(…"},
	{"cut in a string", false, false, "<tool_call>\n<function=get_weather>\n<parameter=city>\nOsl",
		`0:get_weather({"city":"Osl…`},
	{"cut in a number", false, false, "<tool_call>\n<function=get_weather>\n<parameter=days>\n12", `0:get_weather(…`},
	{"cut after a value", false, false,
		"<tool_call>\n<function=get_weather>\n<parameter=days>\n12\n</parameter>\n</func", `0:get_weather({"days":12…`},
	{"cut after the function", false, false, "<tool_call>\n<function=now>\n</function>\n</tool", `0:now({})`},
	{"string verbatim", false, false, call("get_weather", "city", "\n a \"b\"\\\t\u2028é\U0001F30D <x> "+
		"</parameterx>\n"), `0:get_weather({"city":"\n a \"b\"\\\t` + "\u2028é\U0001F30D" + ` <x> </parameterx>\n"})`},
	{"string on one line", false, false,
		"<tool_call><function=get_weather><parameter=city>Oslo</parameter></function></tool_call>",
		`0:get_weather({"city":"Oslo"})`},
	{"empty string", false, false, call("get_weather", "city", ""), `0:get_weather({"city":""})`},
	{"empty string without lines", false, false,
		"<tool_call><function=get_weather><parameter=city></parameter></function></tool_call>",
		`0:get_weather({"city":""})`},
	{"a newline", false, false, call("get_weather", "city", "\n"), `0:get_weather({"city":"\n"})`},
	{"null", false, false, call("get_weather", "city", "null", "days", "null", "maybe", "null"),
		`0:get_weather({"city":null,"days":null,"maybe":null})`},
	{"nearly null", false, false, call("get_weather", "city", "nullable", "maybe", "null\n", "mode", "nul"),
		`0:get_weather({"city":"nullable","maybe":"null\n","mode":"nul"})`},
	{"integers", false, false, call("get_weather", "days", " -007 ", "days", "123456789012345678901", "days", "3.5",
		"days", "x", "level", "2"),
		`0:get_weather({"days":-7,"days":123456789012345678901,"days":"3.5","days":"x","level":2})`},
	{"numbers", false, false, call("get_weather", "wind", "1.50", "wind", "2.0", "wind", ".5", "wind", "1e400", "wind",
		"NaN", "wind", "0x10", "wind", "3"),
		`0:get_weather({"wind":1.50,"wind":2,"wind":0.5,"wind":"1e400","wind":"NaN","wind":"0x10","wind":3})`},
	{"booleans", false, false, call("get_weather", "now", "True", "now", "false", "now", "yes"),
		`0:get_weather({"now":true,"now":false,"now":false})`},
	{"objects", false, false, call("get_weather", "where", "{\"b\": 1.0,\n \"a\": [null]}", "named",
		"{'x': True, 'y': (1, None,), }", "where", "{oops}"),
		`0:get_weather({"where":{"b":1.0,"a":[null]},"named":{"x":true,"y":[1,null]},"where":"{oops}"})`},
	{"arrays", false, false, call("get_weather", "tags", `["a", "b"]`, "tags", `['it\'s', "x\n", u]`, "tags",
		`['it\'s\x41\u00e9\q']`, "tags", "[]"),
		`0:get_weather({"tags":["a","b"],"tags":"['it\\'s', \"x\\n\", u]","tags":["it'sAé\\q"],"tags":[]})`},
	{"alternatives", false, false, call("get_weather", "either", "5", "either", "five", "any", "[1]", "any", "x",
		"loop", "true"), `0:get_weather({"either":5,"either":"five","any":[1],"any":"x","loop":true})`},
	{"name in need of escapes", false, false, call("get_weather", "a\"b", "x"), `0:get_weather({"a\"b":"x"})`},
}

func TestRepliesAreSplit(t *testing.T) {
	for _, test := range replies {
		t.Run(test.name, func(t *testing.T) {
			opt := family.ParserOptions{ThinkingOpen: test.thinking, Tools: parserTools}
			if test.noTools {
				opt.Tools = nil
			}
			if got := parse(opt, test.reply); got != test.want {
				t.Fatalf("got  %q\nwant %q", got, test.want)
			}
			for cut := range test.reply {
				if got := parse(opt, test.reply[:cut], test.reply[cut:]); got != test.want {
					t.Fatalf("cut at %d (%q): got %q, want %q", cut, test.reply[:cut], got, test.want)
				}
			}
			if got := parse(opt, strings.Split(test.reply, "")...); got != test.want {
				t.Fatalf("one by one: got %q, want %q", got, test.want)
			}
		})
	}
}

// TestCompleteCallsAreJSON also reads random mixtures of tags: nothing panics, a cut changes nothing, and the arguments
// of calls that ended are JSON objects.
func TestCompleteCallsAreJSON(t *testing.T) {
	words := []string{"<think>", "</think>", "<tool_call>", "</tool_call>", "<function=get_weather>", "<function=",
		"</function>", "<parameter=city>", "<parameter=days>",
		"<parameter=where>", "<parameter=", "</parameter>", "\n", "\n\n", " ", "a", "<", ">", "null", "1", "{'a': [1]}",
		"é", `"`, `\`}
	r := rand.New(rand.NewPCG(1, 2))
	ended := 0
	for range 3000 {
		var pieces []string
		for range 1 + r.IntN(25) {
			pieces = append(pieces, words[r.IntN(len(words))])
		}
		opt := family.ParserOptions{ThinkingOpen: r.IntN(2) == 0, Tools: parserTools}
		reply := strings.Join(pieces, "")
		p := NewOutputParser(opt)
		events := append(p.Push(reply), p.Close()...)
		whole := script(events)
		if p.Unfinished() {
			whole += "…"
		}
		if got := parse(opt, pieces...); got != whole {
			t.Fatalf("%q: word by word %q, whole %q", reply, got, whole)
		}
		if got := parse(opt, strings.Split(reply, "")...); got != whole {
			t.Fatalf("%q: one by one %q, whole %q", reply, got, whole)
		}
		arguments := map[int]string{}
		for _, e := range events {
			switch e.Kind {
			case family.ToolCallArguments:
				arguments[e.Index] += e.Text
			case family.ToolCallEnd:
				ended++
				var o map[string]any
				if err := json.Unmarshal([]byte(arguments[e.Index]), &o); err != nil {
					t.Fatalf("%q: arguments %q: %v", reply, arguments[e.Index], err)
				}
			}
		}
	}
	if ended == 0 {
		t.Error("no call ended: the test saw none")
	}
}

// Without tools nothing can follow content, so its newlines need not wait.
func TestNewlinesAreNotHeldWithoutTools(t *testing.T) {
	p := NewOutputParser(family.ParserOptions{})
	if got := script(append(p.Push("a"), p.Push("\n\n")...)); got != "C:a\n\n" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyATagIsHeldBack(t *testing.T) {
	opt := family.ParserOptions{ThinkingOpen: true, Tools: parserTools}
	p := NewOutputParser(opt)
	steps := []struct{ push, want string }{
		{"I think ", "R:I think "},
		{"a < b", "R:a < b"},
		{" <", "R: "},
		{"x", "R:<x"},
		{"\n", ""},
		{"y</th", "R:\ny"},
		{"ink>\n\nSo", "C:So"},
		{"\n\n<tool_call>", ""},
		{"\n<function=get_weather>\n<parameter=city>\n", "0:get_weather("},
		{"O", `{"city":"O`},
		{"slo\n", "slo"},
		{"more", `\nmore`},
		{"\n</parameter", ""},
		{">\n<parameter=days>\n1", `"`},
		{"2\n</parameter>", `,"days":12`},
		{"\n</function>", "})"},
		{"\n</tool_call>", ""},
	}
	for _, step := range steps {
		if got := script(p.Push(step.push)); got != strings.TrimPrefix(step.want, " ") {
			t.Errorf("push %q: got %q, want %q", step.push, got, step.want)
		}
	}
	if got := script(p.Close()); got != "" {
		t.Errorf("close: %q", got)
	}
}

func FuzzOutputParser(f *testing.F) {
	for _, test := range replies {
		f.Add(test.reply, test.thinking, 3)
	}
	f.Fuzz(func(t *testing.T, reply string, thinking bool, cut int) {
		opt := family.ParserOptions{ThinkingOpen: thinking, Tools: parserTools}
		cut = min(max(cut, 0), len(reply))
		if one, two := parse(opt, reply), parse(opt, reply[:cut], reply[cut:]); one != two {
			t.Errorf("whole %q, cut %q", one, two)
		}
	})
}
