// Command judged plays an OpenAI-compatible server that the checks judge: honest, or at fault in one way. It is no
// model: it finds codes, follows assignments and calls tools by rules, and a token of it is a word. Its prefix cache is
// honest unless the mode says otherwise.
//
//	judged --mode MODE [--port N]
//
// prints "ready at ADDRESS" and serves until it is stopped. Modes: see modes.go.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

type server struct {
	mode string
	mu   sync.Mutex
	seen [][]string // the words of prompts that were read, for the cache
	old  []old      // for mode stale
}

// message is a turn as clients send it.
type message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type request struct {
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	Options   struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name       string         `json:"name"`
			Parameters map[string]any `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Choice   any            `json:"tool_choice"`
	Template map[string]any `json:"chat_template_kwargs"`
}

func main() {
	mode := flag.String("mode", "honest", "")
	port := flag.Int("port", 0, "")
	flag.Parse()
	if !slices.Contains(modes, *mode) {
		fmt.Fprintf(os.Stderr, "judged: no mode %q\n", *mode)
		os.Exit(2)
	}
	s := &server{mode: *mode}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		fmt.Fprintln(os.Stderr, "judged:", err)
		os.Exit(1)
	}
	fmt.Printf("ready at http://%s/v1\n", listener.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		if !s.allowed(w, r) {
			return
		}
		window := 100000
		if s.mode == "narrow" {
			window = 700
		}
		json.NewEncoder(w).Encode(
			map[string]any{"object": "list", "data": []any{
				map[string]any{"id": "judged", "object": "model", "context_window": window}}})
	})
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /tokenize", s.tokenize)
	panic(http.Serve(listener, mux))
}

// allowed asks for the key in mode keyed. The refusal repeats the key that came, as some servers do.
func (s *server) allowed(w http.ResponseWriter, r *http.Request) bool {
	if key := r.Header.Get("Authorization"); s.mode == "keyed" && key != "Bearer right-key" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"the key %s is wrong"}}`, strings.TrimPrefix(key, "Bearer "))
		return false
	}
	return true
}

func (s *server) tokenize(w http.ResponseWriter, r *http.Request) {
	var q struct{ Prompt, Content string }
	if s.mode != "tokenizer" || json.NewDecoder(r.Body).Decode(&q) != nil {
		http.NotFound(w, r)
		return
	}
	tokens := strings.Fields(q.Prompt + q.Content)
	json.NewEncoder(w).Encode(map[string]any{"count": len(tokens), "tokens": make([]int, len(tokens))})
}

func (s *server) chat(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(w, r) {
		return
	}
	var q request
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, err.Error())
		return
	}
	if s.refusal(w, q) {
		return
	}
	words, cached := s.read(q)
	text, calls := s.answer(q)
	pieces := strings.SplitAfter(text, " ")
	if text == "" {
		pieces = nil
	}
	finish := "stop"
	if len(calls) > 0 {
		finish = "tool_calls"
	} else if len(pieces) > q.MaxTokens {
		pieces, finish = pieces[:q.MaxTokens], "length"
	}
	usage := s.usage(len(words), cached, len(pieces)+8*len(calls))
	if !q.Stream || s.mode == "one-piece" {
		s.sendWhole(w, strings.Join(pieces, ""), calls, finish, usage)
		return
	}
	s.sendStream(w, r, q, pieces, calls, finish, usage)
}

// read counts a prompt and finds how much of it was read before.
func (s *server) read(q request) (words []string, cached int) {
	for _, m := range q.Messages {
		words = append(words, "<"+m.Role+">")
		words = append(words, strings.Fields(m.Content)...)
		for _, c := range m.ToolCalls {
			words = append(words, c.Function.Name, c.Function.Arguments)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, before := range s.seen {
		n := 0
		for n < min(len(before), len(words)-1) && before[n] == words[n] {
			n++
		}
		cached = max(cached, n)
	}
	s.seen = append(s.seen, words)
	if s.mode == "no-cache" {
		cached = 0
	}
	return words, cached
}

func (s *server) sendWhole(w http.ResponseWriter, text string, calls []toolCall, finish string, usage map[string]any) {
	body := map[string]any{"object": "chat.completion", "choices": []any{
		map[string]any{"index": 0, "finish_reason": finish,
			"message": map[string]any{"role": "assistant", "content": text, "tool_calls": calls}}}}
	if usage != nil {
		body["usage"] = usage
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(body)
}

func (s *server) sendStream(w http.ResponseWriter, r *http.Request, q request, pieces []string, calls []toolCall,
	finish string, usage map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event map[string]any) {
		raw, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
		http.NewResponseController(w).Flush()
	}
	delta := func(d map[string]any, finish any) {
		send(map[string]any{"object": "chat.completion.chunk", "choices": []any{
			map[string]any{"index": 0, "delta": d, "finish_reason": finish}}})
	}
	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for i, piece := range pieces {
		if i == len(pieces)/2 && s.cutHere(w, send) {
			return
		}
		if s.mode != "at-once" {
			time.Sleep(2 * time.Millisecond)
		}
		delta(map[string]any{"content": piece}, nil)
		if r.Context().Err() != nil {
			return
		}
	}
	for i, c := range calls {
		delta(map[string]any{"tool_calls": []any{
			map[string]any{"index": i, "id": c.ID, "type": "function", "function": map[string]any{
				"name": c.Function.Name, "arguments": ""}}}}, nil)
		half := len(c.Function.Arguments) / 2
		for _, part := range []string{c.Function.Arguments[:half], c.Function.Arguments[half:]} {
			delta(map[string]any{"tool_calls": []any{
				map[string]any{"index": i, "function": map[string]any{"arguments": part}}}}, nil)
		}
	}
	delta(map[string]any{}, finish)
	if usage != nil && q.Options.Usage {
		send(map[string]any{"object": "chat.completion.chunk", "choices": []any{}, "usage": usage})
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
