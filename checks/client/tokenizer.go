package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// Tokenizer counts tokens by the server's own tokenizer, where it has an endpoint for that.
type Tokenizer struct {
	server *Server
	ours   func(text string) map[string]any
}

// FindTokenizer asks once whether there is a /tokenize: llama.cpp and vLLM have one, with other members. It leaves
// s.Tokens nil where there is none.
func (s *Server) FindTokenizer(ctx context.Context) {
	for _, form := range []func(string) map[string]any{
		func(text string) map[string]any {
			return map[string]any{"model": s.Model, "prompt": text, "add_special_tokens": false}
		},
		func(text string) map[string]any { return map[string]any{"content": text} },
	} {
		t := &Tokenizer{server: s, ours: form}
		one, err := t.Count(ctx, "The morning train.")
		two, again := t.Count(ctx, "The morning train. The morning train.")
		if err == nil && again == nil && one > 0 && two > one {
			s.Tokens = t
			return
		}
	}
}

// Count is how many tokens a text has, without template and without special tokens.
func (t *Tokenizer) Count(ctx context.Context, text string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	raw, err := json.Marshal(t.ours(text))
	if err != nil {
		return 0, err
	}
	response, err := t.server.send(ctx, http.MethodPost, t.server.root()+"/tokenize", bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return 0, t.server.broken(ctx, err)
	}
	var answer struct {
		Count  *int              `json:"count"`
		Tokens []json.RawMessage `json:"tokens"`
	}
	if err := t.server.parse(response, body, &answer); err != nil {
		return 0, err
	}
	if answer.Count != nil {
		return *answer.Count, nil
	}
	return len(answer.Tokens), nil
}
