package api_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"slipway/engine/api/turn"
	"slipway/engine/pass"
)

// n replies are n requests to one prompt: choices of their own in order, streamed or not, each with its own seed.
func TestSeveralRepliesAreChoicesOfTheirOwn(t *testing.T) {
	s := start(t, setup{queue: 4})
	s.say("Hello you!")
	for _, path := range []string{chatPath, textPath} {
		body := chat(`,"n":3` + thinkingOff)
		if path == textPath {
			body = `{"model":"pocket","prompt":"Hi","n":3}`
		}
		whole := decode[reply](t, s.post(t, path, body).body)
		texts, finish := make([]string, 3), make([]string, 3)
		for _, c := range s.open(t, t.Context(), path,
			strings.TrimSuffix(body, "}")+`,"stream":true,"stream_options":{"include_usage":true}}`).all() {
			for _, choice := range c.Choices {
				texts[choice.Index] += choice.Text
				if choice.Delta.Content != nil {
					texts[choice.Index] += *choice.Delta.Content
				}
				if choice.FinishReason != nil {
					finish[choice.Index] += *choice.FinishReason
				}
			}
			if c.Usage != nil && c.Usage.Completion != whole.Usage.Completion {
				t.Errorf("%s: streamed usage %+v, whole %+v", path, c.Usage, whole.Usage)
			}
		}
		if len(whole.Choices) != 3 || whole.Usage.Total != whole.Usage.Prompt+whole.Usage.Completion ||
			whole.Usage.Completion != 3*(len(encode("Hello you!"))+1) {
			t.Errorf("%s: %+v", path, whole)
		}
		for i, c := range whole.Choices {
			if c.Message.Content != nil {
				c.Text = *c.Message.Content
			}
			if c.Index != i || c.Text != "Hello you!" || texts[i] != c.Text || finish[i] != c.FinishReason {
				t.Errorf("%s: choice %d is %+v, streamed %q, %q", path, i, c, texts[i], finish[i])
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range s.ask(t, `,"n":4,"seed":1,"temperature":2,"max_tokens":20`+thinkingOff).Choices {
		seen[*c.Message.Content] = true
	}
	if len(seen) != 4 {
		t.Errorf("four replies say %d things", len(seen))
	}
}

// Where the queue has no room for all replies, none runs.
func TestSeveralRepliesNeedRoomForAll(t *testing.T) {
	open := make(chan struct{})
	s := start(t, setup{pass: func([]pass.Segment) error { <-open; return nil }})
	a := s.post(t, chatPath, chat(`,"n":3`+thinkingOff)) // two run at a time, and none waits
	close(open)
	if a.status != http.StatusTooManyRequests {
		t.Errorf("%d: %s", a.status, a.body)
	}
	if r := s.ask(t, `,"n":2`+thinkingOff); len(r.Choices) != 2 {
		t.Errorf("%+v", r)
	}
}

func compressed(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(body))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A compressed body is read as what it holds, which is bounded, not its own size.
func TestCompressedBodyIsBounded(t *testing.T) {
	zipped := func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }
	long := strings.Replace(chat(thinkingOff), "Hi", strings.Repeat("word ", 400_000), 1) // 2 MB
	s := start(t, setup{bodyBytes: 4 << 20})
	for _, test := range []struct {
		name, body string
		status     int
		says       string
	}{
		{"a chat", compressed(t, chat(thinkingOff)), 200, "Hello!"},
		{"a large one", compressed(t, long), 400, "context_length_exceeded"},
		{"one that grows", compressed(t, strings.Repeat(" ", 5<<20)), 413, "4194304 bytes"},
		{"cut off", compressed(t, long)[:1000], 400, "did not arrive whole"},
		{"not compressed", chat(thinkingOff), 400, "not the gzip"},
		{"damaged", strings.Replace(compressed(t, chat(thinkingOff)), "\x00\x00", "\xff\x00", 1), 400, ""},
		{"nothing", "", 400, ""},
	} {
		a := s.post(t, chatPath, test.body, zipped)
		if a.status != test.status || !strings.Contains(string(a.body), test.says) {
			t.Errorf("%s: %d: %.200s", test.name, a.status, a.body)
		}
	}
	other := func(r *http.Request) { r.Header.Set("Content-Encoding", "zstd") }
	if a := s.post(t, chatPath, chat(""), other); a.status != 415 {
		t.Errorf("another encoding: %d: %s", a.status, a.body)
	}
}

// A conversation of very many messages is refused before they are read.
func TestMessagesAreBounded(t *testing.T) {
	s := start(t, setup{bodyBytes: 8 << 20})
	many := func(n int) string { return strings.Repeat(`{"role":"user","content":"x"},`, n-1) }
	for path, body := range map[string]string{
		chatPath:      `{"model":"pocket","messages":[%s{"role":"user","content":"x"}]}`,
		messagesPath:  `{"model":"pocket","max_tokens":1,"messages":[%s{"role":"user","content":"x"}]}`,
		responsesPath: `{"model":"pocket","input":[%s{"role":"user","content":"x"}]}`,
		ollamaPath:    `{"model":"pocket","messages":[%s{"role":"user","content":"x"}]}`,
	} {
		a := s.post(t, path, fmt.Sprintf(body, many(turn.MostMessages+1)))
		if a.status != 400 || !strings.Contains(string(a.body), fmt.Sprint(turn.MostMessages)) {
			t.Errorf("%s: %d: %s", path, a.status, a.body)
		}
	}
}

func TestTokenizeGivesTheIDsOfThePrompt(t *testing.T) {
	s := start(t, setup{})
	var got struct {
		Tokens []int32
		Count  int
		Window int `json:"max_model_len"`
	}
	for _, body := range []string{`{"prompt":"Hello <|im_end|>"}`, `{"model":"pocket","content":"Hello <|im_end|>"}`,
		`{"content":"Hello <|im_end|>","add_special":false}`} {
		unmarshal(t, s.post(t, "/tokenize", body).body, &got)
		if pocket().Tokenizer.Decode(got.Tokens) != "Hello <|im_end|>" || got.Count != len(got.Tokens) ||
			got.Count != len(encode("Hello <|im_end|>")) || got.Window != 2048 {
			t.Errorf("%s: %+v", body, got)
		}
	}
	unmarshal(t, s.post(t, "/tokenize", chat(twoTools+thinkingOff)).body, &got)
	if r := s.ask(t, twoTools+thinkingOff); r.Usage.Prompt != got.Count {
		t.Errorf("a chat of %d tokens is counted as %d", r.Usage.Prompt, got.Count)
	}
	for _, body := range []string{`{}`, `{"model":"other","prompt":"x"}`, `{"prompt":""}`, `{"prompt":"x","mood":1}`} {
		if a := s.post(t, "/tokenize", body); a.status != 400 && a.status != 404 {
			t.Errorf("%s: %d: %s", body, a.status, a.body)
		}
	}
}
