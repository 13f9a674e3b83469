package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"slipway/engine/families/qwen35/calltest"
)

// assistantTurn is a reply as a client sends it back.
type assistantTurn struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content,omitempty"`
	ToolCalls []call `json:"tool_calls,omitempty"`
}

// MarshalJSON writes a call as a client does.
func (c call) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"id": c.ID, "type": "function",
		"function": map[string]string{"name": c.Function.Name, "arguments": c.Function.Arguments}})
}

func said(t *testing.T, reasoning, content string, calls []call) (s calltest.Said) {
	t.Helper()
	s.Reasoning, s.Content = strings.TrimSpace(reasoning), strings.TrimSpace(content)
	for _, c := range calls {
		d := json.NewDecoder(strings.NewReader(c.Function.Arguments))
		d.UseNumber()
		read := calltest.Call{Name: c.Function.Name}
		if err := d.Decode(&read.Arguments); err != nil {
			t.Fatalf("arguments %q: %v", c.Function.Arguments, err)
		}
		s.Calls = append(s.Calls, read)
	}
	return s
}

// A reply says the same streamed and in one piece, and what the slow reader of the whole text finds; and the server
// accepts it back.
func TestRandomRepliesAreReadAlike(t *testing.T) {
	s := start(t, setup{})
	r := rand.New(rand.NewPCG(20, 2))
	tools := `,"tools":` + calltest.ToolsJSON
	called, cuts := 0, 0
	replies := 250
	if os.Getenv("SLIPWAY_SOAK") != "" {
		replies = 1000
	}
	for i := range replies {
		text := calltest.RandomReply(r)
		if strings.HasPrefix(text, "\n") || strings.HasPrefix(text, "<think>") {
			text = "So " + text // the double would take the prompt's end for what it has written
		}
		s.say(text)
		ids := *s.script.Load()
		thinking := r.IntN(3) == 0
		members := tools + fmt.Sprintf(`,"chat_template_kwargs":{"enable_thinking":%v}`, thinking)
		cut := r.IntN(4) == 0 && len(ids) > 0
		if cut {
			ids = ids[:1+r.IntN(len(ids))]
			members += fmt.Sprintf(`,"max_tokens":%d`, len(ids))
			cuts++
		}
		want := calltest.Read(pocket().Tokenizer.Decode(ids), calltest.Tools, thinking, cut)
		plain, stream := s.ask(t, members).Choices[0], s.stream(t, members)
		content := ""
		if plain.Message.Content != nil {
			content = *plain.Message.Content
		}
		got := said(t, plain.Message.Reasoning, content, plain.Message.ToolCalls)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("reply %d, %q (thinking %v, cut %v)\ngot  %+v\nwant %+v", i, text, thinking, cut, got, want)
		}
		if content != stream.content || plain.Message.Reasoning != stream.thinking ||
			plain.FinishReason != stream.finish || len(plain.Message.ToolCalls) != len(stream.calls) {
			t.Fatalf("reply %d, %q:\nplain  %+v %q\nstream %+v", i, text, plain, content, stream)
		}
		for j, c := range plain.Message.ToolCalls {
			if c.Function != stream.calls[j].Function {
				t.Fatalf("reply %d, %q: call %d is %+v, streamed %+v", i, text, j, c.Function, stream.calls[j].Function)
			}
		}
		turn := []any{assistantTurn{"assistant", content, plain.Message.Reasoning, stream.calls}}
		for _, c := range stream.calls {
			turn = append(turn, map[string]string{"role": "tool", "tool_call_id": c.ID, "content": "done"})
		}
		if len(stream.calls) > 0 {
			called++
		}
		history, err := json.Marshal(turn)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"model":"pocket","max_tokens":1,"messages":[{"role":"user","content":"Hi"},` +
			string(history[1:len(history)-1]) + `,{"role":"user","content":"Go on."}]` + tools + `}`
		if a := s.post(t, chatPath, body); a.status != 200 {
			t.Fatalf("reply %d, %q, sent back: status %d: %s", i, text, a.status, a.body)
		}
	}
	if called < replies/20 || cuts < replies/10 {
		t.Errorf("%d replies called, %d were cut: the test saw too little", called, cuts)
	}
}
