package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// Message is one turn. Content is a pointer because a turn that only calls tools has none.
type Message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

// Say makes a turn of text.
func Say(role, content string) Message { return Message{Role: role, Content: &content} }

// ToolCall is a call that a model made; Arguments is JSON in a string, as the API has it.
type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Tool is a function that a model may call. Parameters is a JSON schema.
type Tool struct {
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

type Function struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
}

// Request is one chat completion, greedy: temperature 0, so that the same question has the same answer.
type Request struct {
	Messages  []Message
	Tools     []Tool
	Choice    string // tool_choice; empty: left out
	MaxTokens int
	// false asks the template for none, where the server has such a switch
	Thinking    bool
	DraftTokens *int                              // of a server of ours; nil: as the server has it
	Plain       bool                              // the reply in one piece instead of a stream
	OnPiece     func(text string, reasoning bool) // may be nil
}

// SHA256 names a request's text, tools and limit: what the answer depends on.
func (r Request) SHA256() string {
	raw, err := json.Marshal(struct {
		M []Message
		T []Tool
		C string
		N int
		K bool
	}{r.Messages, r.Tools, r.Choice, r.MaxTokens, r.Thinking})
	if err != nil {
		panic(err) // plain values
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// optional members are left out for a server that refuses them; the reply's notes say so.
const (
	templateSwitch = "chat_template_kwargs"
	streamUsage    = "stream_options"
	oldLimit       = "max_tokens" // newer OpenAI models have max_completion_tokens instead
)

func (s *Server) body(r Request) []byte {
	members := map[string]any{"model": s.Model, "messages": r.Messages, "temperature": 0, "stream": !r.Plain}
	if s.lacks[oldLimit] {
		members["max_completion_tokens"] = r.MaxTokens
	} else {
		members[oldLimit] = r.MaxTokens
	}
	if !s.lacks[templateSwitch] {
		members[templateSwitch] = map[string]any{"enable_thinking": r.Thinking}
	}
	if !r.Plain && !s.lacks[streamUsage] {
		members[streamUsage] = map[string]any{"include_usage": true}
	}
	if n := cmp.Or(r.DraftTokens, s.DraftTokens); n != nil {
		members["slipway"] = map[string]int{"draft_tokens": *n}
	}
	if len(r.Tools) > 0 {
		members["tools"] = r.Tools
		if r.Choice != "" {
			members["tool_choice"] = r.Choice
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		panic(err) // plain values
	}
	return raw
}

var errSilent = errors.New("silent")

// Chat puts one request and reads the whole reply. A reply that is not whole is a *Fault; what had come is in the reply
// all the same. A member that the server refuses by name and that is not needed is left out from then on.
func (s *Server) Chat(ctx context.Context, r Request) (*Reply, error) {
	for {
		reply, err := s.once(ctx, r)
		var f *Fault
		if errors.As(err, &f) && f.Kind == Refused &&
			(f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity) {
			if member := s.droppable(f); member != "" {
				s.lacks[member] = true
				continue
			}
		}
		return reply, err
	}
}

// droppable is the member that a refusal names, if it can be done without and was sent.
func (s *Server) droppable(f *Fault) string {
	for _, member := range []string{templateSwitch, streamUsage, oldLimit} {
		if !s.lacks[member] && (f.Param == member || strings.HasPrefix(f.Param, member+".") || f.Param == "" &&
			strings.Contains(f.Why, member)) {
			return member
		}
	}
	return ""
}

// Lacks are the members that this server has refused, in a fixed order.
func (s *Server) Lacks() []string {
	var names []string
	for _, member := range []string{templateSwitch, streamUsage, oldLimit} {
		if s.lacks[member] {
			names = append(names, member)
		}
	}
	return names
}

func (s *Server) once(ctx context.Context, r Request) (*Reply, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	alive := func() {}
	if s.Patience > 0 {
		timer := time.AfterFunc(s.Patience, func() { stop(errSilent) })
		defer timer.Stop()
		alive = func() { timer.Reset(s.Patience) }
	}
	reply := &Reply{Started: time.Now(), Asked: r}
	err := s.exchange(ctx, r, reply, alive)
	reply.Ended = time.Now()
	if errors.Is(err, errSilent) {
		err = &Fault{Kind: Silent, Why: "nothing came from " + s.Base + " for " + s.Patience.String(),
			Pieces: len(reply.Pieces)}
	}
	return reply, err
}

func (s *Server) exchange(ctx context.Context, r Request, reply *Reply, alive func()) error {
	response, err := s.send(ctx, http.MethodPost, s.Base+"/chat/completions", bytes.NewReader(s.body(r)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	alive()
	body := &counted{from: response.Body, alive: alive, left: maxReplyBytes}
	if response.StatusCode == http.StatusOK && isEventStream(response) {
		reply.Streamed = true
		return s.readStream(ctx, body, reply)
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return s.broken(ctx, err)
	}
	return s.readPlain(response, raw, reply)
}

// maxReplyBytes is far beyond the longest reply of any window.
const maxReplyBytes = 256 << 20

// counted reports every read and ends at the limit.
type counted struct {
	from  io.Reader
	alive func()
	left  int64
}

func (c *counted) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, &Fault{Kind: OverTheTop, Why: "the reply is longer than any reply may be"}
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if n > 0 {
		c.alive()
	}
	return n, err
}
