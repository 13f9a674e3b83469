package api_test

import (
	"strings"
	"testing"
	"time"

	"slipway/engine/pass"
)

// streamed is what a client puts together from a stream.
type streamed struct {
	content, thinking, finish, notice string
	calls                             []call
	completion                        int
}

func (s *server) stream(t *testing.T, members string) (got streamed) {
	t.Helper()
	for _, c := range s.open(t, t.Context(), chatPath,
		chat(members+`,"stream":true,"stream_options":{"include_usage":true}`)).all() {
		if c.Usage != nil {
			got.completion = c.Usage.Completion
		}
		if len(c.Choices) == 0 {
			continue
		}
		d := c.Choices[0].Delta
		if d.Content != nil {
			got.content += *d.Content
		}
		if d.Reasoning != nil {
			got.thinking += *d.Reasoning
		}
		for _, piece := range d.ToolCalls {
			if piece.ID != "" {
				got.calls = append(got.calls, piece)
			} else {
				got.calls[len(got.calls)-1].Function.Arguments += piece.Function.Arguments
			}
		}
		if c.Choices[0].FinishReason != nil {
			got.finish, got.notice = *c.Choices[0].FinishReason, c.Slipway.Notice
		}
	}
	return got
}

// A client runs what it is handed, and some repair arguments that are cut off. So no delta of a call is sent that is
// not whole: what the tokens end in is left out, and what the model left unfinished is text.
func TestUnfinishedCallIsNeverSent(t *testing.T) {
	half := timeCall[:strings.Index(timeCall, "\n</parameter>")]
	named := `,"tool_choice":{"type":"function","function":{"name":"get_time"}}`
	tests := []struct {
		name, say, members string
		content, finish    string
		notice             string
	}{
		{"ends in the opening", "I look.\n\n<tool_call>\n<function=get_", "", "I look.\n\n<tool_call>\n<function=get_",
			"stop", "left as text"},
		{"ends after the tag", "I look.\n\n<tool_call>", "", "I look.\n\n<tool_call>", "stop", "left as text"},
		{"ends in a value", "I look.\n\n" + half, "", "I look.\n\n" + half, "stop", "left as text"},
		{"runs out in a value", "I look.\n\n" + half + strings.Repeat(" UTC", 50), `,"max_tokens":40`, "I look.",
			"length",
			"inside a tool call; it is left out"},
		{"runs out in the second call", weatherCall + "\n" + half + strings.Repeat(" UTC", 50), `,"max_tokens":60`, "",
			"length", "inside a tool call; it is left out"},
		{"ends in the second call", weatherCall + "\n" + half, "", weatherCall + "\n" + half, "stop", "left as text"},
		{"calls no tool that is given", strings.Replace(timeCall, "get_time", "rm", 1), "",
			strings.Replace(timeCall, "get_time", "rm", 1), "stop", "left as text"},
		{"required call of one token", timeCall, `,"tool_choice":"required","max_tokens":1`, "", "length", "left out"},
		{"required call of two tokens", timeCall, `,"tool_choice":"required","max_tokens":2`, "", "length", "left out"},
		{"required call of three tokens", timeCall, `,"tool_choice":"required","max_tokens":3`, "", "length",
			"left out"},
		{"named call of one token", timeCall, named + `,"max_tokens":1`, "", "length", "left out"},
		{"named call of three tokens", timeCall, named + `,"max_tokens":3`, "", "length", "left out"},
		{"named call of five tokens", timeCall, named + `,"max_tokens":5`, "", "length", "left out"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			s.say(test.say)
			members := twoTools + thinkingOff + test.members
			r := s.ask(t, members)
			c := r.Choices[0]
			if c.FinishReason != test.finish || len(c.Message.ToolCalls) != 0 ||
				!strings.Contains(r.Slipway.Notice, test.notice) || r.Usage.Slipway.Notice != r.Slipway.Notice {
				t.Errorf("plain: %+v, notice %q, %q", c, r.Slipway.Notice, r.Usage.Slipway.Notice)
			}
			if content := c.Message.Content; content == nil || *content != test.content {
				t.Errorf("plain: content %v, want %q", content, test.content)
			}
			got := s.stream(t, members)
			if got.finish != test.finish || got.content != test.content || len(got.calls) != 0 ||
				!strings.Contains(got.notice, test.notice) {
				t.Errorf("stream: %+v", got)
			}
		})
	}
}

// A call that is held sends nothing for a long time; the client must not take that for a dead server.
func TestHeldCallKeepsTheStreamAlive(t *testing.T) {
	step := make(chan struct{})
	s := start(t, setup{keepAlive: 20 * time.Millisecond, pass: func([]pass.Segment) error { <-step; return nil }})
	s.say(strings.Replace(timeCall, "UTC", strings.Repeat("UTC ", 100), 1))
	e := s.open(t, t.Context(), chatPath, chat(twoTools+thinkingOff+`,"stream":true`))
	kept, calls, stop, over := 0, 0, make(chan struct{}), make(chan struct{})
	go func() { // the passes never pause for as long as the client is kept alive after
		defer close(over)
		for {
			select {
			case step <- struct{}{}:
				time.Sleep(time.Millisecond)
			case <-stop:
				return
			}
		}
	}()
	for _, c := range e.all() {
		d := c.Choices[0].Delta
		if calls == 0 && d.Role == "" && d.Content == nil && d.ToolCalls == nil && c.Choices[0].FinishReason == nil {
			kept++
		}
		calls += len(d.ToolCalls)
	}
	close(stop)
	<-over
	if kept == 0 || calls == 0 {
		t.Errorf("%d empty deltas, %d of calls", kept, calls)
	}
}

// Stop texts end content. Thinking, markup and forced tokens hold none.
func TestStopTextsMatchOnlyContent(t *testing.T) {
	named := `,"tool_choice":{"type":"function","function":{"name":"get_time"}}`
	call := `get_time {"zone":"UTC"}`
	tests := []struct {
		name, say, members, stop   string
		thinking, content, calling string
		finish                     string
	}{
		{"newline in a call's markup", timeCall, "", `"\n"`, "", "", call, "tool_calls"},
		{"newline between content and call", "I look.\n\n" + timeCall, "", `"\n"`, "", "I look.", call, "tool_calls"},
		{"newline in forced tokens", timeCall, named, `"\n"`, "", "", call, "tool_calls"},
		{"required, newline", timeCall, `,"tool_choice":"required"`, `["\n","function"]`, "", "", call, "tool_calls"},
		{"tag as a stop text", timeCall, "", `["<tool_call>","zone","UTC"]`, "", "", call, "tool_calls"},
		{"newline in content", "one\ntwo", "", `"\n"`, "", "one", "", "stop"},
		{"text across tokens", "one, two, three", "", `", three"`, "", "one, two", "", "stop"},
		{"text that begins and does not end", "one, two", "", `", twos"`, "", "one, two", "", "stop"},
		{"content in front of a call", "one two " + timeCall, "", `"two"`, "", "one ", "", "stop"},
		{"text that only a call would join", "one\n" + timeCall + "\ntwo", "", `"onetwo"`, "", "onetwo", call,
			"tool_calls"},
		{"in thinking", "I think so.\n</think>\n\nHello!", `,"chat_template_kwargs":{"enable_thinking":true}`, `" so"`,
			"I think so.", "Hello!", "", "stop"},
		{"after thinking", "I think so.\n</think>\n\nHello!", `,"chat_template_kwargs":{"enable_thinking":true}`,
			`"\n"`, "I think so.", "Hello!", "", "stop"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, setup{})
			s.say(test.say)
			members := twoTools + test.members + `,"stop":` + test.stop
			if !strings.Contains(members, "enable_thinking") {
				members += thinkingOff
			}
			r := s.ask(t, members)
			m, content, calling := r.Choices[0].Message, "", ""
			if m.Content != nil {
				content = *m.Content
			}
			for _, c := range m.ToolCalls {
				calling += c.Function.Name + " " + c.Function.Arguments
			}
			if m.Reasoning != test.thinking || content != test.content || calling != test.calling ||
				r.Choices[0].FinishReason != test.finish {
				t.Errorf("plain: %+v, content %q", r.Choices[0], content)
			}
			got := s.stream(t, members)
			calling = ""
			for _, c := range got.calls {
				calling += c.Function.Name + " " + c.Function.Arguments
			}
			if got.thinking != test.thinking || got.content != test.content || calling != test.calling ||
				got.finish != test.finish || got.completion != r.Usage.Completion {
				t.Errorf("stream: %+v, want %d tokens", got, r.Usage.Completion)
			}
		})
	}
}

// The reply ends with the token that makes a stop text or the one wanted call whole.
func TestReplyEndsAtItsStop(t *testing.T) {
	long := strings.Repeat(" and on", 100)
	for name, test := range map[string]struct{ say, members string }{
		"stop text": {"one, two", `,"stop":"two"`},
		"one call":  {timeCall, twoTools + `,"parallel_tool_calls":false`},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, setup{})
			s.say(test.say + long)
			r := s.ask(t, test.members+thinkingOff)
			if most := len(encode(test.say)); r.Usage.Completion > most || r.Choices[0].FinishReason == "length" {
				t.Errorf("%d tokens for a reply of %d", r.Usage.Completion, most)
			}
			if !strings.Contains(s.log.String(), "outcome=stop") {
				t.Errorf("log: %s", s.log.String())
			}
		})
	}
}
