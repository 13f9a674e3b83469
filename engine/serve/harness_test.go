package serve_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/engine/pass"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/serve/servetest"
)

const (
	vocab = 64
	end   = 63 // the token that ends a reply
)

// letters decodes id n as the n-th letter.
type letters struct{}

func (letters) Push(id int32) string { return string(rune('a' + id%26)) }
func (letters) Flush() string        { return "" }

// counting gives token after token: the next is one more than the last, modulo 26.
func counting(history []int32) int32 { return (history[len(history)-1] + 1) % 26 }

type harness struct {
	*serve.Engine
	net    *servetest.Network
	cancel context.CancelFunc
	ran    chan error

	mu        sync.Mutex
	summaries []serve.Summary
}

func start(t *testing.T, net *servetest.Network, opt serve.Options) *harness {
	t.Helper()
	h := &harness{net: net, ran: make(chan error, 1)}
	if net.Vocab == 0 {
		net.Vocab = vocab
	}
	if net.Window == 0 {
		net.Window = 10_000
	}
	if net.Chunk == 0 {
		net.Chunk = 100
	}
	if net.Next == nil {
		net.Next = counting
	}
	opt.VocabTokens, opt.EndTokens = vocab, []int32{end}
	opt.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Parallel == 0 {
		opt.Parallel = 2
	}
	opt.OnEnd = func(s serve.Summary) {
		h.mu.Lock()
		h.summaries = append(h.summaries, s)
		h.mu.Unlock()
	}
	engine, err := serve.New(net, opt)
	if err != nil {
		t.Fatal(err)
	}
	h.Engine = engine
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	go func() { h.ran <- engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if open := net.Open(); open != 0 {
			h.waitRun(t)
			if open = net.Open(); open != 0 {
				t.Errorf("%d sequences are left open", open)
			}
		}
	})
	return h
}

func (h *harness) waitRun(t *testing.T) error {
	t.Helper()
	select {
	case err := <-h.ran:
		h.ran <- err
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("Run does not return")
		return nil
	}
}

func prompt(n int) []int32 { return make([]int32, n) }

func request(id string, promptTokens, maxTokens int) serve.Request {
	p := sample.Neutral()
	p.Temperature = 0
	return serve.Request{ID: id, Prompt: prompt(promptTokens), MaxTokens: maxTokens, Sampling: p, TopLogprobs: -1,
		Text: letters{}}
}

func submit(t *testing.T, h *harness, r serve.Request) *serve.Reply {
	t.Helper()
	reply, err := h.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// read gives a reply's text, tokens and end.
func read(t *testing.T, reply *serve.Reply) (string, []int32, *serve.End) {
	t.Helper()
	var text strings.Builder
	var tokens []int32
	for {
		select {
		case <-reply.Ready():
		case <-time.After(10 * time.Second):
			t.Fatal("the reply does not end")
		}
		for _, e := range reply.Take() {
			text.WriteString(e.Text)
			if e.Token != nil {
				tokens = append(tokens, e.Token.ID)
			}
			if e.End != nil {
				return text.String(), tokens, e.End
			}
		}
	}
}

// hold makes the first pass wait until the returned function is called.
func hold(net *servetest.Network) (entered chan struct{}, release func()) {
	entered, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	net.Pass = func([]pass.Segment) error {
		once.Do(func() { close(entered); <-open })
		return nil
	}
	return entered, func() { close(open) }
}
