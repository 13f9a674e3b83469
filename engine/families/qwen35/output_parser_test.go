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
	json.RawMessage(`{"type":"function","function":{"name":"write","parameters":{"type":"object","properties":{
		"path":{"type":"string"},"text":{"type":"string"}},"required":["path","text"]}}}`),
	json.RawMessage(`{"type":"function","function":{"name":"free","parameters":{"type":"object"}}}`),
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
		case family.CallHeld:
			continue
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
	return closed(p, events, false)
}

// parseCut is parse of a reply that the model did not end.
func parseCut(opt family.ParserOptions, reply string) string {
	p := NewOutputParser(opt)
	return closed(p, p.Push(reply), true)
}

func closed(p *OutputParser, events []family.Event, cut bool) string {
	s := script(append(events, p.Close(cut)...))
	return s + map[family.Verdict]string{family.CutCall: "…", family.NoReading: "?",
		family.SeveralReadings: "??"}[p.Verdict()]
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
	{"think inside content is a word", false, false, "the tag <think> is", "C:the tag <think> is"},
	{"stray think end", false, false, "the\n</think>\n\nend </think>", "C:the\n\n\nend "},
	{"stray think end at the start", false, true, "\n</think>\n\nHello!", "C:Hello!"},
	{"stray think end twice", true, false, "a</think>b</think></think>c", "R:a C:bc"},
	{"think end that another one makes", false, false, "a</th</think>ink>b</thi", "C:ab</thi"},
	{"think end behind a held tag", false, false, "a <tool_call></think>b", "C:a <tool_call>b"},
	{"think end behind a call", false, false, call("now") + "\nDone</think>.", "0:now({}) C:Done."},
	{"think end in a value", false, false, call("get_weather", "city", "a</think>b"),
		`0:get_weather({"city":"a</think>b"})`},
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
	{"JSON in a call's tag", false, false, "<tool_call>\n{\"name\":\"now\"}\n</tool_call>", "0:now({})"},
	{"JSON with arguments", false, false, "a\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": " +
		"\"</parameter> </tool_call>\", \"days\": 140.0, \"where\": {\"b\": " +
		"1.0}}}\n</tool_call>\n<tool_call>{\"name\": \"now\", " +
		"\"arguments\": null}</tool_call>",
		`C:a 0:get_weather({"city":"</parameter> </tool_call>","days":140,"where":{"b":1.0}}) 1:now({})`},
	{"JSON with arguments in a string", false, false,
		`<tool_call>{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}</tool_call>`,
		`0:get_weather({"city":"Oslo"})`},
	{"JSON of no tool", false, false, `<tool_call>{"name":"other"}</tool_call>`,
		`C:<tool_call>{"name":"other"}</tool_call>?`},
	{"JSON of an unknown parameter", false, false, `<tool_call>{"name":"now","arguments":{"x":1}}</tool_call>`,
		`C:<tool_call>{"name":"now","arguments":{"x":1}}</tool_call>?`},
	{"JSON with a member twice", false, false, `<tool_call>{"name":"now","name":"get_weather"}</tool_call>`,
		`C:<tool_call>{"name":"now","name":"get_weather"}</tool_call>?`},
	{"broken JSON", false, false, `<tool_call>{"name":"now"</tool_call>`, `C:<tool_call>{"name":"now"</tool_call>?`},
	{"JSON without a tag", false, false, `{"name":"now","arguments":{}}`, `C:{"name":"now","arguments":{}}`},
	{"function without a name", false, false, "<tool_call>\n<function=>\n", "C:<tool_call>\n<function=>\n?"},
	{"name that runs on", false, false, "<tool_call><function=a\nb>", "C:<tool_call><function=a\nb>?"},
	{"names without their end", false, false,
		"<tool_call>\n<function=get_weather\n<parameter=city\nOslo\n</parameter>\n</function>\n</tool_call>",
		`0:get_weather({"city":"Oslo"})`},
	{"quoted names", false, false, call(`"get_weather"`, `'city'`, "Oslo"), `0:get_weather({"city":"Oslo"})`},
	{"bare function", false, false,
		"I look.\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>",
		`C:I look. 0:get_weather({"city":"Oslo"})`},
	{"bare function with a block's end", false, false, "<function=now>\n</function>\n</tool_call>", `0:now({})`},
	{"bare function inside a line", false, false, "write <function=now>\n</function>",
		"C:write <function=now>\n</function>"},
	{"bare function in a fence", false, false, "So:\n```xml\n<function=now>\n</function>\n```\nthat is it",
		"C:So:\n```xml\n<function=now>\n</function>\n```\nthat is it"},
	{"bare function behind a fence", false, false, "```\nx\n```\n<function=now>\n</function>",
		"C:```\nx\n``` 0:now({})"},
	{"call in thinking that goes on", true, false, "I could\n" + call("now") + "\nbut no.\n</think>\n\nHello!",
		"R:I could\n" + call("now") + "\nbut no. C:Hello!"},
	{"very long name", false, false, "<tool_call><function=" + strings.Repeat("n", 300) + ">",
		"C:<tool_call><function=" + strings.Repeat("n", 300) + ">?"},
	{"no tools, tags are text", false, true, call("now"), "C:" + call("now")},
	{"no tools, thinking", true, true, "a <tool_call>\n<function=now>\n</think>b",
		"R:a <tool_call>\n<function=now> C:b"},
	{"unknown tool", false, false, call("other", "x", "1"), "C:" + call("other", "x", "1") + "?"},
	{"unknown tool with a given one inside", false, false, call("other", "x", "\n"+call("now")+"\n"),
		"C:" + call("other", "x", "\n"+call("now")+"\n") + "?"},
	{"unknown parameter", false, false, call("get_weather", "x", "1"), "C:" + call("get_weather", "x", "1") + "?"},
	{"required parameter is missing", false, false, call("write", "path", "a"), "C:" + call("write", "path", "a") +
		"?"},
	{"required parameters are there", false, false, call("write", "path", "a", "text", "b"),
		`0:write({"path":"a","text":"b"})`},
	{"any parameter", false, false, call("free", "x", "1"), `0:free({"x":"1"})`},
	{"parameter twice", false, false, call("write", "path", "a", "text", "b", "path", "a"),
		`0:write({"path":"a","text":"b"})`},
	{"parameter twice with two values", false, false, call("write", "path", "a", "text", "b", "path", "c"),
		"C:" + call("write", "path", "a", "text", "b", "path", "c") + "?"},
	{"end of a parameter in a value", false, false,
		call("write", "path", "a", "text", "close it with </parameter> then"),
		`0:write({"path":"a","text":"close it with </parameter> then"})`},
	{"end of a parameter in its own line", false, false, call("write", "path", "a", "text", "x\n</parameter>\ny"),
		`0:write({"path":"a","text":"x\n</parameter>\ny"})`},
	{"whole parameter in a value", false, false, call("write", "text", "<parameter=path>\nb\n</parameter>", "path",
		"a"),
		`0:write({"text":"<parameter=path>\nb\n</parameter>","path":"a"})`},
	{"whole parameter in a line of a value", false, false, call("write", "text", "use <parameter=k>v</parameter> so",
		"path", "a"), `0:write({"text":"use <parameter=k>v</parameter> so","path":"a"})`},
	{"call in a value", false, false, call("write", "path", "a", "text", "so:\n"+call("write", "path", "b", "text",
		"c")+"\nthat is it"), `0:write({"path":"a","text":"so:\n<tool_call>\n<function=write>\n<parameter=path>\nb\n` +
		`</parameter>\n<parameter=text>\nc\n</parameter>\n</function>\n</tool_call>\nthat is it"})`},
	{"call as a value", false, false, call("write", "path", "a", "text", call("now")),
		`0:write({"path":"a","text":"<tool_call>\n<function=now>\n</function>\n</tool_call>"})`},
	{"parameter without its end", false, false, "<tool_call>\n<function=write>\n<parameter=path>\na\n<parameter=text>" +
		"\nb\n</parameter>\n</function>\n</tool_call>", `0:write({"path":"a","text":"b"})`},
	{"last parameter without its end", false, false,
		"<tool_call>\n<function=write>\n<parameter=path>\na\n</parameter>\n" +
			"<parameter=text>\nb\n</function>\n</tool_call>", `0:write({"path":"a","text":"b"})`},
	{"parameter closed by its own name", false, false, "<tool_call>\n<function=write>\n<parameter=path>\na\n</path>\n" +
		"<parameter=text>\nb\n</parameter=text>\n</function>\n</tool_call>", `0:write({"path":"a","text":"b"})`},
	{"tag of the parameter's name in a value", false, false, "<tool_call>\n<function=write>\n<parameter=path>\na\n" +
		"</parameter>\n<parameter=text>\n<text>b</text>\n</function>\n</tool_call>",
		`0:write({"path":"a","text":"<text>b</text>"})`},
	{"value in a line that may have swallowed a tag", false, false,
		"<tool_call><function=get_weather><parameter=city>a" +
			"<parameter=mode>b</parameter></function></tool_call>",
		"C:<tool_call><function=get_weather><parameter=city>a" +
			"<parameter=mode>b</parameter></function></tool_call>??"},
	{"first of two calls left open", false, false, "<tool_call>\n<function=write>\n<parameter=path>\na\n" +
		call("write",
			"path", "b", "text", "c"), "C:<tool_call>\n<function=write>\n<parameter=path>\na\n" +
		call("write", "path", "b",
			"text", "c") + "?"},
	{"two calls in a line", false, false, "<tool_call><function=get_weather><parameter=city>a</parameter></function>" +
		"</tool_call><tool_call><function=get_weather><parameter=city>b</parameter></function></tool_call>",
		"C:<tool_call><function=get_weather><parameter=city>a</parameter></function></tool_call><tool_call>" +
			"<function=get_weather><parameter=city>b</parameter></function></tool_call>??"},
	{"object that holds tags", false, false, call("get_weather", "where", `{"a": "</parameter>\n<parameter=city>x"}`),
		`0:get_weather({"where":{"a":"</parameter>\n<parameter=city>x"}})`},
	{"whole number for an integer", false, false, call("get_weather", "days", "140.0"), `0:get_weather({"days":140})`},
	{"prose with a tag", false, false, call("now") + "\nso </parameter>", "C:" + call("now") + "\nso </parameter>?"},
	{"text between parameters", false, false, "<tool_call><function=get_weather>so <b> " +
		"<parameter=city>a</parameter></function></tool_call>", "C:<tool_call><function=get_weather>so <b> " +
		"<parameter=city>a</parameter></function></tool_call>?"},
	{"cut in the tag", false, false, "a\n<tool_ca", "C:a\n<tool_ca"},
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
	{"name in need of escapes", false, false, call("free", "a\"b", "x"), `0:free({"a\"b":"x"})`},
}

// What the tokens end in is left out; what came before stays.
func TestCutCallsAreLeftOut(t *testing.T) {
	whole := call("get_weather", "city", "Oslo", "days", "12")
	for cut := len(callTag); cut < len(whole); cut++ {
		reply := "a\n" + whole[:cut]
		if got := parseCut(family.ParserOptions{Tools: parserTools}, reply); got != "C:a…" {
			t.Errorf("%q: %q", reply, got)
		}
		if got := parse(family.ParserOptions{Tools: parserTools}, reply); strings.Contains(got, "0:") &&
			!strings.Contains(reply, "</function>") {
			t.Errorf("%q, which the model ended: %q", reply, got)
		}
		reply = whole + "\n" + reply[2:]
		if got := parseCut(family.ParserOptions{Tools: parserTools}, reply); got != "…" {
			t.Errorf("%q: %q", reply, got)
		}
	}
	for reply, want := range map[string]string{
		"a\n<tool_ca":         "C:a\n<tool_ca",
		whole:                 `0:get_weather({"city":"Oslo","days":12})`,
		whole + "\n":          `0:get_weather({"city":"Oslo","days":12})`,
		whole + "\nIt is":     "…",
		"a\n<function=now>\n": "C:a…",
	} {
		if got := parseCut(family.ParserOptions{Tools: parserTools}, reply); got != want {
			t.Errorf("%q: %q, want %q", reply, got, want)
		}
	}
	if got := parseCut(family.ParserOptions{ThinkingOpen: true, Tools: parserTools}, "a\n<tool_call>"); got != "R:a…" {
		t.Errorf("while thinking: %q", got)
	}
}

// One call is certain before the reply ends where no value holds a tag; otherwise the rest decides.
func TestOneCallEndsEarlyWhereItIsCertain(t *testing.T) {
	opt := family.ParserOptions{Tools: parserTools, OneCall: true}
	p := NewOutputParser(opt)
	if got := script(p.Push(call("get_weather", "city", "Oslo"))); got != `0:get_weather({"city":"Oslo"})` {
		t.Errorf("got %q", got)
	}
	p = NewOutputParser(opt)
	tagged := call("write", "path", "a", "text", "so:\n"+call("now")+"\nend")
	if got := script(p.Push(tagged)); got != "" {
		t.Errorf("not certain, yet %q", got)
	}
	if got := script(p.Close(false)); !strings.HasPrefix(got, `0:write({"path":"a","text":"so:\n<tool_call>`) {
		t.Errorf("at the end: %q", got)
	}
}

// Sixty-five places where a value may end are too many to be certain.
func TestEndsThatAreLookedAtAreBounded(t *testing.T) {
	opt := family.ParserOptions{Tools: parserTools}
	for n, want := range map[int]string{10: `0:write(`, 200: "C:<tool_call>"} {
		value := strings.Repeat("x\n</parameter>\n</function>\n", n)
		reply := call("write", "path", "a", "text", value)
		if got := parse(opt, reply); !strings.HasPrefix(got, want) {
			t.Errorf("%d ends: %.80q", n, got)
		}
	}
	many := strings.Repeat(call("write", "path", "a", "text", "b")+"\n", 200)
	if got := parse(opt, many); !strings.Contains(got, ` 199:write({"path":"a","text":"b"})`) {
		t.Errorf("two hundred calls: %.80q", got)
	}
	if got := parse(opt, strings.Repeat("<tool_call>\n<function=write>\n<parameter=text>\n", 30000)); got[0] != 'C' {
		t.Errorf("ninety thousand tags: %.80q", got)
	}
}

func TestValuesTakeTheirTypes(t *testing.T) {
	for _, test := range [][3]string{
		{"days", " -007 ", `-7`}, {"days", "123456789012345678901", `123456789012345678901`}, {"days", "3.5", `"3.5"`},
		{"days", "140.0", `140`}, {"days", "x", `"x"`}, {"level", "2", `2`},
		{"wind", "1.50", `1.50`}, {"wind", "2.0", `2`}, {"wind", ".5", `0.5`}, {"wind", "1e400", `"1e400"`},
		{"wind", "NaN", `"NaN"`}, {"wind", "0x10", `"0x10"`}, {"wind", "3", `3`},
		{"now", "True", `true`}, {"now", "false", `false`}, {"now", "yes", `false`},
		{"where", "{\"b\": 1.0,\n \"a\": [null]}", `{"b":1.0,"a":[null]}`},
		{"named", "{'x': True, 'y': (1, None,), }", `{"x":true,"y":[1,null]}`}, {"where", "{oops}", `"{oops}"`},
		{"tags", `["a", "b"]`, `["a","b"]`}, {"tags", `['it\'s', "x\n", u]`, `"['it\\'s', \"x\\n\", u]"`},
		{"tags", `['it\'s\x41\u00e9\q']`, `["it'sAé\\q"]`}, {"tags", "[]", `[]`},
		{"either", "5", `5`}, {"either", "five", `"five"`}, {"any", "[1]", `[1]`}, {"any", "x", `"x"`},
		{"loop", "true", `true`},
	} {
		got := parse(family.ParserOptions{Tools: parserTools}, call("get_weather", test[0], test[1]))
		if want := `0:get_weather({"` + test[0] + `":` + test[2] + `})`; got != want {
			t.Errorf("%s %q: %s, want %s", test[0], test[1], got, want)
		}
	}
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
		"é", `"`, `\`, "<tool_call>\n<function=get_weather>\n", "\n</function>\n</tool_call>", call("now"),
		"<parameter=city>\nOslo\n</parameter>\n"}
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
		events := p.Push(reply)
		events = append(events, p.Close(false)...)
		whole := parse(opt, reply)
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

func TestOnlyATagAndACallAreHeldBack(t *testing.T) {
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
		{"\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>", ""},
		{"\n</function>\n</tool_call>", ""},
	}
	for _, step := range steps {
		if got := script(p.Push(step.push)); got != strings.TrimPrefix(step.want, " ") {
			t.Errorf("push %q: got %q, want %q", step.push, got, step.want)
		}
	}
	if got := script(p.Close(false)); got != `0:get_weather({"city":"Oslo"})` {
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
