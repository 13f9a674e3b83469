package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/engine/pass"
)

func TestPlainReplyHasEveryPart(t *testing.T) {
	s := start(t, setup{})
	s.say("Hello! Füße & <b>")
	r := s.ask(t, thinkingOff)
	c := r.Choices[0]
	if r.Object != "chat.completion" || r.Model != "pocket" || !strings.HasPrefix(r.ID, "chatcmpl-") ||
		len(r.Choices) != 1 {
		t.Errorf("head %+v", r)
	}
	if c.Message.Role != "assistant" || c.Message.Content == nil || *c.Message.Content != "Hello! Füße & <b>" ||
		c.FinishReason != "stop" {
		t.Errorf("choice %+v", c)
	}
	want := len(encode("Hello! Füße & <b>")) + 1 // the end token
	if u := r.Usage; u.Completion != want || u.Total != u.Prompt+u.Completion || u.Prompt != u.Details.Cached+
		u.Slipway.Computed || u.Prompt < 10 {
		t.Errorf("usage %+v, want %d tokens", u, want)
	}
}

func TestRoleIsSentBeforeTheFirstToken(t *testing.T) {
	open := make(chan struct{})
	s := start(t, setup{pass: func([]pass.Segment) error { <-open; return nil }})
	e := s.open(t, context.Background(), "/v1/chat/completions",
		chat(`,"stream":true,"stream_options":{"include_usage":true}`+thinkingOff))
	first, ok, _ := e.next() // arrives while the network is held
	if !ok || first.Choices[0].Delta.Role != "assistant" || s.net.Passes() > 1 {
		t.Fatalf("first event %+v after %d passes", first, s.net.Passes())
	}
	close(open)
	rest := e.all()
	var content strings.Builder
	finish := ""
	for i, c := range rest {
		if c.Object != "chat.completion.chunk" {
			t.Errorf("object %q", c.Object)
		}
		if (c.Usage != nil) != (i == len(rest)-1) {
			t.Errorf("event %d of %d: usage %+v", i, len(rest), c.Usage)
		}
		for _, choice := range c.Choices {
			if choice.Delta.Content != nil {
				content.WriteString(*choice.Delta.Content)
			}
			if choice.FinishReason != nil {
				finish += *choice.FinishReason
			}
		}
	}
	last := rest[len(rest)-1]
	if content.String() != "Hello!" || finish != "stop" || len(last.Choices) != 0 || last.Usage == nil ||
		last.Usage.Prompt == 0 {
		t.Errorf("%q, %q, %+v", content.String(), finish, last)
	}
}

func TestLongPrefillKeepsTheClientAlive(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		open := make(chan struct{})
		s := start(t, setup{keepAlive: 5 * time.Millisecond, pass: func([]pass.Segment) error { <-open; return nil }})
		e := s.open(t, context.Background(), "/v1/chat/completions", chat(`,"stream":true`+thinkingOff))
		for i := range 4 {
			c, ok, _ := e.next()
			d := c.Choices[0].Delta
			if !ok || i > 0 && (d.Role != "" || d.Content != nil) {
				t.Fatalf("event %d: %+v", i, c)
			}
		}
		close(open)
		e.all()
	})
	t.Run("text stream", func(t *testing.T) {
		open := make(chan struct{})
		s := start(t, setup{keepAlive: 5 * time.Millisecond, pass: func([]pass.Segment) error { <-open; return nil }})
		e := s.open(t, context.Background(), "/v1/completions", `{"model":"pocket","prompt":"x","stream":true}`)
		for range 3 {
			if c, ok, _ := e.next(); !ok || c.Choices[0].Text != "" {
				t.Fatalf("%+v", c)
			}
		}
		close(open)
		e.all()
	})
	plain := func(t *testing.T, fail func() error) answer {
		open := make(chan struct{})
		var once sync.Once
		s := start(t, setup{keepAlive: 5 * time.Millisecond, pass: func([]pass.Segment) error {
			<-open
			return fail()
		}})
		r, _ := http.NewRequest(http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(chat(thinkingOff)))
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r) // returns with the head, which came with the white space
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var body []byte
		buffer := make([]byte, 4096)
		for {
			n, err := response.Body.Read(buffer)
			body = append(body, buffer[:n]...)
			if len(body) >= 3 {
				once.Do(func() { close(open) })
			}
			if err != nil {
				return answer{response.StatusCode, response.Header, body}
			}
		}
	}
	t.Run("plain", func(t *testing.T) {
		a := plain(t, func() error { return nil })
		if !strings.HasPrefix(string(a.body), "   ") || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("body %q", a.body)
		}
		if r := decode[reply](t, a.body); *r.Choices[0].Message.Content != "Hello!" {
			t.Errorf("%s", a.body)
		}
	})
	t.Run("plain, then the network fails", func(t *testing.T) {
		a := plain(t, func() error { return fmt.Errorf("page %d is gone", 7) })
		r := decode[reply](t, a.body)
		if a.status != http.StatusOK || r.Error == nil || r.Error.Code != "internal_error" ||
			strings.Contains(string(a.body), "page 7") {
			t.Errorf("status %d, body %s", a.status, a.body)
		}
	})
}

func TestFailedReplyDoesNotLookComplete(t *testing.T) {
	broken := setup{pass: func([]pass.Segment) error { return fmt.Errorf("page 7 is gone") }}
	if a := start(t, broken).post(t, "/v1/chat/completions", chat("")); a.status != 500 ||
		decode[reply](t, a.body).Error == nil {
		t.Errorf("plain: %d, %s", a.status, a.body)
	}
	e := start(t, broken).open(t, context.Background(), "/v1/chat/completions", chat(`,"stream":true`))
	e.next()
	c, ok, _ := e.next()
	if !ok || c.Error == nil || c.Error.Code != "internal_error" {
		t.Errorf("stream: %+v", c)
	}
	if _, ok, whole := e.next(); ok || whole {
		t.Error("a failed stream says [DONE]")
	}
}

func TestThinkingStaysOutOfTheContent(t *testing.T) {
	s := start(t, setup{})
	s.say("They greet me.\n</think>\n\nHello!")
	r := s.ask(t, `,"chat_template_kwargs":{"enable_thinking":true}`)
	m := r.Choices[0].Message
	if strings.TrimSpace(m.Reasoning) != "They greet me." || *m.Content != "Hello!" {
		t.Errorf("%+v, content %q", m, *m.Content)
	}
	if n := r.Usage.CompletionDetails.Reasoning; n < 3 || n >= r.Usage.Completion {
		t.Errorf("reasoning tokens %d of %d", n, r.Usage.Completion)
	}
	r = s.ask(t, `,"max_tokens":3,"chat_template_kwargs":{"enable_thinking":true}`)
	if c := r.Choices[0]; c.FinishReason != "length" || *c.Message.Content != "" ||
		!strings.Contains(r.Slipway.Notice, "3 tokens while still thinking") {
		t.Errorf("cut while thinking: %+v, notice %q", c, r.Slipway.Notice)
	}
	s.say("They greet me.")
	if r = s.ask(t, ""); *r.Choices[0].Message.Content != "" ||
		!strings.Contains(r.Slipway.Notice, "ended its reply while still thinking") {
		t.Errorf("ended while thinking: %+v", r)
	}
	// With thinking off the same words are content.
	if r = s.ask(t, thinkingOff+`,"max_tokens":3`); r.Slipway.Notice != "" || *r.Choices[0].Message.Content == "" {
		t.Errorf("thinking off: %+v", r)
	}
}

const twoTools = `,"tools":[{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}}},{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{"zone":{"type":"string"}}}}}]`

const weatherCall = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
const timeCall = "<tool_call>\n<function=get_time>\n<parameter=zone>\nUTC\n</parameter>\n</function>\n</tool_call>"

func TestToolCallsArriveComplete(t *testing.T) {
	tests := []struct {
		name, say, members string
		content            string
		calls              []string // name and arguments
		finish             string
	}{
		{"auto, no call", "Hello!", twoTools, "Hello!", nil, "stop"},
		{"auto, a call", weatherCall, twoTools, "", []string{`get_weather {"city":"Oslo","days":3}`}, "tool_calls"},
		{"auto, content and two calls", "I look.\n\n" + weatherCall + "\n" + timeCall, twoTools, "I look.",
			[]string{`get_weather {"city":"Oslo","days":3}`, `get_time {"zone":"UTC"}`}, "tool_calls"},
		{"one call wanted, two come", weatherCall + "\n" + timeCall, twoTools + `,"parallel_tool_calls":false`, "",
			[]string{`get_weather {"city":"Oslo","days":3}`}, "tool_calls"},
		{"required, the model begins with a parameter", weatherCall[strings.Index(weatherCall, "<parameter"):],
			twoTools +
				`,"tool_choice":"required"`, "", []string{`get_weather {"city":"Oslo","days":3}`}, "tool_calls"},
		{"required, the model calls", timeCall, twoTools + `,"tool_choice":"required"`, "",
			[]string{`get_time {"zone":"UTC"}`}, "tool_calls"},
		{"named", timeCall, twoTools + `,"tool_choice":{"type":"function","function":{"name":"get_time"}}`, "",
			[]string{`get_time {"zone":"UTC"}`}, "tool_calls"},
		{"named, the model begins with a parameter", timeCall[strings.Index(timeCall, "<parameter"):], twoTools +
			`,"tool_choice":{"type":"function","function":{"name":"get_time"}}`, "",
			[]string{`get_time {"zone":"UTC"}`}, "tool_calls"},
		{"named, the model writes another's parameters", weatherCall[strings.Index(weatherCall, "<parameter"):],
			twoTools +
				`,"tool_choice":{"type":"function","function":{"name":"get_time"}}`,
			"<tool_call>\n<function=get_time>\n" + weatherCall[strings.Index(weatherCall, "<parameter"):], nil, "stop"},
		{"none", "Hello!", twoTools + `,"tool_choice":"none"`, "Hello!", nil, "stop"},
	}
	for _, test := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream %v", test.name, stream), func(t *testing.T) {
				s := start(t, setup{})
				s.say(test.say)
				members := test.members + thinkingOff
				var content, finish string
				var calls []call
				if stream {
					for _, c := range s.open(t, context.Background(), "/v1/chat/completions",
						chat(members+`,"stream":true`)).all() {
						d := c.Choices[0].Delta
						if d.Content != nil {
							content += *d.Content
						}
						for _, piece := range d.ToolCalls {
							if piece.ID != "" {
								calls = append(calls, piece)
								continue
							}
							if piece.Index == nil || *piece.Index != len(calls)-1 {
								t.Fatalf("arguments of call %v after call %d", piece.Index, len(calls)-1)
							}
							calls[*piece.Index].Function.Arguments += piece.Function.Arguments
						}
						if c.Choices[0].FinishReason != nil {
							finish = *c.Choices[0].FinishReason
						}
					}
				} else {
					r := s.ask(t, members)
					c := r.Choices[0]
					calls, finish = c.Message.ToolCalls, c.FinishReason
					if c.Message.Content != nil {
						content = *c.Message.Content
					}
					if len(calls) > 0 && len(test.calls) > 0 && test.content == "" && c.Message.Content != nil {
						t.Errorf("content is %q, not null", *c.Message.Content)
					}
				}
				if strings.TrimSpace(content) != test.content || test.finish != "" && finish != test.finish {
					t.Errorf("content %q, finish %q", content, finish)
				}
				if len(calls) != len(test.calls) {
					t.Fatalf("%d calls, want %d: %+v", len(calls), len(test.calls), calls)
				}
				ids := map[string]bool{}
				for i, c := range calls {
					if !regexp.MustCompile(`^call_[0-9a-f]{24}$`).MatchString(c.ID) || ids[c.ID] ||
						c.Type != "function" {
						t.Errorf("id %q, type %q", c.ID, c.Type)
					}
					ids[c.ID] = true
					got := c.Function.Name + " " + strings.Join(strings.Fields(c.Function.Arguments), "")
					if !strings.HasPrefix(got, test.calls[i]) {
						t.Errorf("call %q, want %q", got, test.calls[i])
					}
					if test.finish != "" && !json.Valid([]byte(c.Function.Arguments)) {
						t.Errorf("arguments %q are not JSON", c.Function.Arguments)
					}
				}
			})
		}
	}
}

func TestForcedCallEndsThinking(t *testing.T) {
	s := start(t, setup{})
	s.say(timeCall)
	r := s.ask(t, twoTools+`,"tool_choice":"required","chat_template_kwargs":{"enable_thinking":true}`)
	if calls := r.Choices[0].Message.ToolCalls; len(calls) != 1 || calls[0].Function.Name != "get_time" ||
		r.Choices[0].Message.Reasoning != "" {
		t.Errorf("%+v", r.Choices[0])
	}
}

func TestToolConversationIsAcceptedBack(t *testing.T) {
	s := start(t, setup{})
	body := `{"model":"pocket"` + twoTools + thinkingOff + `,"messages":[{"role":"developer","content":"Be brief."},
		{"role":"user","content":[{"type":"text","text":"Weather"},{"type":"text","text":" in Oslo?"}]},
		{"role":"assistant","content":null,"annotations":[],"refusal":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Oslo\"}"}}]},
		{"role":"tool","tool_call_id":"call_1","content":"rain"}]}`
	if a := s.post(t, "/v1/chat/completions", body); a.status != 200 {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

func TestLogprobsBelongToTheContent(t *testing.T) {
	s := start(t, setup{})
	s.say("They greet.\n</think>\n\nHello!")
	for _, stream := range []bool{false, true} {
		members := `,"logprobs":true,"top_logprobs":3,"chat_template_kwargs":{"enable_thinking":true}`
		type points struct {
			Content []struct {
				Token   string
				Logprob float64
				Bytes   []byte
				Top     []struct {
					Token   string
					Logprob float64
				} `json:"top_logprobs"`
			}
		}
		var got points
		if stream {
			for _, c := range s.open(t, context.Background(), "/v1/chat/completions",
				chat(members+`,"stream":true`)).all() {
				if raw := c.Choices[0].Logprobs; raw != nil && string(raw) != "null" {
					got.Content = append(got.Content, decode[points](t, raw).Content...)
				}
			}
		} else {
			got = decode[points](t, s.ask(t, members).Choices[0].Logprobs)
		}
		var joined strings.Builder
		for _, p := range got.Content {
			joined.WriteString(p.Token)
			if len(p.Top) != 3 || p.Top[0].Token != p.Token || p.Top[0].Logprob != p.Logprob || p.Logprob > 0 ||
				math.Abs(p.Logprob) > 1 {
				t.Errorf("stream %v: %+v", stream, p)
			}
		}
		if strings.TrimSpace(joined.String()) != "Hello!" {
			t.Errorf("stream %v: tokens %q", stream, joined.String())
		}
	}
}

func TestReplyEndsWithTheWindow(t *testing.T) {
	s := start(t, setup{window: 120})
	r := s.ask(t, thinkingOff)
	prompt := r.Usage.Prompt
	s.say(strings.Repeat("Hello! ", 200))
	r = s.ask(t, thinkingOff+`,"max_tokens":5000`)
	if c := r.Choices[0]; c.FinishReason != "length" || r.Usage.Total != 120 ||
		!strings.Contains(r.Slipway.Notice, "filled the window") {
		t.Errorf("%+v, usage %+v, notice %q", c, r.Usage, r.Slipway.Notice)
	}
	if r = s.ask(t, thinkingOff+`,"max_completion_tokens":7`); r.Usage.Completion != 7 ||
		r.Choices[0].FinishReason != "length" {
		t.Errorf("usage %+v", r.Usage)
	}
	long := strings.Replace(chat(""), "Hi", strings.Repeat("word ", 300), 1)
	a := s.post(t, "/v1/chat/completions", long)
	e := decode[reply](t, a.body).Error
	if a.status != 400 || e == nil || e.Code != "context_length_exceeded" ||
		!regexp.MustCompile(`has \d{3,} tokens; the window holds 120`).MatchString(e.Message) {
		t.Errorf("status %d: %s (a short prompt has %d)", a.status, a.body, prompt)
	}
}

func TestSameSeedGivesTheSameReply(t *testing.T) {
	s := start(t, setup{})
	text := func(seed int) string {
		return *s.ask(t, fmt.Sprintf(`,"seed":%d,"temperature":2,"max_tokens":30`, seed)+
			thinkingOff).Choices[0].Message.Content
	}
	if a, b := text(1), text(1); a != b {
		t.Errorf("one seed, two replies: %q, %q", a, b)
	}
	if a, b := text(1), text(-2); a == b {
		t.Errorf("two seeds, one reply: %q", a)
	}
}

func TestClientThatLeavesCancelsItsReply(t *testing.T) {
	step := make(chan struct{})
	s := start(t, setup{pass: func([]pass.Segment) error { <-step; return nil }})
	s.say(strings.Repeat("Hello! ", 100))
	for _, stream := range []string{"true", "false"} {
		before := s.net.Passes()
		ctx, leave := context.WithCancel(context.Background())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions",
				strings.NewReader(chat(thinkingOff+`,"stream":`+stream)))
			r.Header.Set("Content-Type", "application/json")
			if response, err := http.DefaultClient.Do(r); err == nil {
				defer response.Body.Close()
				for buffer := make([]byte, 512); err == nil; {
					_, err = response.Body.Read(buffer)
				}
			}
		}()
		for range 4 { // prefill and three tokens
			step <- struct{}{}
		}
		for s.net.Passes() < before+5 { // the fifth pass is under way
			time.Sleep(time.Millisecond)
		}
		leave()
		<-gone
		for tries := 0; s.engine.Status().Active > 0; tries++ {
			select {
			case step <- struct{}{}:
			default:
				time.Sleep(time.Millisecond)
			}
			if tries > 5000 {
				t.Fatal("the reply continues although its client is gone")
			}
		}
		// The server hears of the closed connection after the client's side; a few passes may fit in between, the 700
		// of the whole reply do not.
		if extra := s.net.Passes() - before - 5; extra > 50 {
			t.Errorf("stream %s: %d passes after the client left", stream, extra)
		}
		if s.net.Open() != 0 {
			t.Errorf("stream %s: %d sequences open", stream, s.net.Open())
		}
	}
}

func TestClientThatDoesNotReadDelaysNoOther(t *testing.T) {
	s := start(t, setup{window: 5_000})
	s.say("Hello!")
	// no end token: fills the window
	body := chat(`,"stream":true,"logprobs":true,"top_logprobs":20,"logit_bias":{"4088":-100}` + thinkingOff)
	stuck, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	fmt.Fprintf(stuck, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for s.engine.Status().Active == 0 {
		time.Sleep(time.Millisecond)
	}
	s.ask(t, thinkingOff)
	for tries := 0; s.engine.Status().Active > 0; tries++ { // some 10 MB of events: more than the sockets hold
		if tries > 30_000 {
			t.Fatal("the engine waits for a client that does not read")
		}
		time.Sleep(time.Millisecond)
	}
}
