package calltest

import (
	"math/rand/v2"
	"strings"
)

// Tools are the tools of [RandomReply], as a client sends them and as [Read] takes them.
var Tools = []Tool{
	{Name: "write", Types: map[string]string{"path": "string", "text": "string"}, Required: []string{"path", "text"}},
	{Name: "count", Types: map[string]string{"n": "integer", "where": "object"}},
	{Name: "now", Types: map[string]string{}},
}

// ToolsJSON is the member tools of a request with [Tools].
const ToolsJSON = `[
{"type":"function","function":{"name":"write","parameters":{"type":"object","properties":{
	"path":{"type":"string"},"text":{"type":"string"}},"required":["path","text"]}}},
{"type":"function","function":{"name":"count","parameters":{"type":"object","properties":{
	"n":{"type":"integer"},"where":{"type":"object"}}}}},
{"type":"function","function":{"name":"now"}}]`

func parameter(name, value string) string {
	return "<parameter=" + name + ">\n" + value + "\n</parameter>\n"
}

func function(name string, parameters ...string) string {
	return "<function=" + name + ">\n" + strings.Join(parameters, "") + "</function>"
}

func block(inner string) string { return "<tool_call>\n" + inner + "\n</tool_call>" }

// RandomReply is built from fragments of the tool and thinking forms: whole calls, some of them with a fragment put in,
// taken out or cut off, and loose fragments.
func RandomReply(r *rand.Rand) string {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	fragment := func() string {
		return pick("<think>", "</think>", "<tool_call>", "</tool_call>", "<function=write>", "<function=now>",
			"</function>",
			"<parameter=path>", "<parameter=text>", "<parameter=n>", "</parameter>", "</parameter=path>", "</path>",
			"<function=", "<parameter=", "\n", "\n\n", " ", "a", "<", "```\n", "12", "140.0", `{"a": "</parameter>"}`,
			"<function=write\n", "<parameter=\"path\">", `{"name": "now"}`, block(function("now")),
			parameter("path", "b"))
	}
	value := func() string {
		return pick("a", "b", "", "null", "line\nline", "a </parameter> b", "x\n</parameter>\ny",
			parameter("path", "v"),
			"use "+parameter("k", "v"), block(function("now")), "so:\n"+block(function("write", parameter("path", "b"),
				parameter("text", "c"))), "</think>", "<tool_call>", "\n<tool_call>\n<function=now>", fragment()+
				fragment())
	}
	whole := func() string {
		switch r.IntN(8) {
		case 0:
			return block(function("now"))
		case 1:
			return block(function("count", parameter("n", pick("12", "140.0", "-7", "many")),
				parameter("where", pick(`{"a": 1}`, `{"a": "</parameter>\n</function>"}`, "{oops}"))))
		case 2:
			return block(`{"name": "write", "arguments": {"path": "a", "text": "</tool_call>"}}`)
		case 3:
			return function("write", parameter("path", value()), parameter("text", value()))
		case 4:
			return block(function("other", parameter("path", "a")))
		case 5:
			return block(function("write", parameter("path", "a")))
		}
		return block(function("write", parameter("path", value()), parameter("text", value())))
	}
	var out strings.Builder
	for range r.IntN(4) {
		out.WriteString(pick("I look.", "Hello!\n", "```\ncode\n```\n", "\n\n", fragment()))
	}
	for range r.IntN(3) {
		call := whole()
		switch r.IntN(6) {
		case 0: // cut off
			call = call[:r.IntN(len(call)+1)]
		case 1: // put in
			at := r.IntN(len(call) + 1)
			call = call[:at] + fragment() + call[at:]
		case 2: // taken out
			lines := strings.SplitAfter(call, "\n")
			at := r.IntN(len(lines))
			call = strings.Join(lines[:at], "") + strings.Join(lines[min(at+1, len(lines)):], "")
		}
		out.WriteString(call + pick("\n", "", "\n\nDone."))
	}
	for range r.IntN(3) {
		out.WriteString(fragment())
	}
	return out.String()
}
