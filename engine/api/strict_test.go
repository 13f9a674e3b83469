package api_test

import (
	"strings"
	"testing"
)

// A call of a strict tool reaches the client only if its arguments fulfil the schema.
func TestStrictToolIsCalledOnlyAsItsSchemaSays(t *testing.T) {
	s := start(t, setup{})
	const tool = `,"tools":[{"type":"function","function":{"name":"book","STRICTparameters":{"type":"object","properties":
		{"city":{"type":"string","enum":["Oslo","Rome"]},"nights":{"type":"integer","maximum":14}},"required":["city"],
		"additionalProperties":false}}}]` + thinkingOff
	call := func(city, nights string) string {
		return "<tool_call>\n<function=book>\n<parameter=city>\n" + city + "\n</parameter>\n<parameter=nights>\n" +
			nights + "\n</parameter>\n</function>\n</tool_call>"
	}
	for _, c := range []struct {
		name, said string
		strict     bool
		calls      int
	}{
		{"fulfils it", call("Oslo", "3"), true, 1},
		{"another value", call("Paris", "3"), true, 0},
		{"too large", call("Rome", "15"), true, 0},
		{"not strict", call("Paris", "15"), false, 1},
	} {
		s.say(c.said)
		strict := ""
		if c.strict {
			strict = `strict":true,"`
		}
		r := s.ask(t, strings.Replace(tool, "STRICT", strict, 1))
		m := r.Choices[0].Message
		if len(m.ToolCalls) != c.calls || c.calls == 0 && (m.Content == nil || !strings.Contains(*m.Content, "book") ||
			r.Slipway.Notice == "") {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}
