package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	return serve.Request{ID: id, Prompt: prompt(promptTokens), MaxTokens: maxTokens, Sampling: p, TopLogprobs: -1, Text: letters{}}
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

func TestShortRequestWaitsForALongPrefill(t *testing.T) {
	const chunk, long = 512, 3000
	var h *harness
	var chunks, seen atomic.Int64 // chunks of the long prompt begun; those begun when the short one's pass came
	var short *serve.Reply
	second := make(chan struct{})
	net := &servetest.Network{Chunk: chunk}
	net.Pass = func(segments []serve.Segment) error {
		for _, s := range segments {
			switch {
			case len(s.Tokens) > 5 && chunks.Add(1) == 2:
				close(second)
				for h.Status().Queued == 0 { // the short request arrives while this chunk runs
					runtime.Gosched()
				}
			case len(s.Tokens) == 5:
				seen.Store(chunks.Load())
			}
		}
		return nil
	}
	h = start(t, net, serve.Options{Queue: 4})
	longReply := submit(t, h, request("long", long, 1))
	<-second
	short = submit(t, h, request("short", 5, 3))
	_, tokens, _ := read(t, short)
	if len(tokens) != 3 {
		t.Errorf("the short reply has %d tokens", len(tokens))
	}
	read(t, longReply)
	if after := seen.Load() - 2; after > 2 || seen.Load() == 0 {
		t.Errorf("the short request's first token came %d chunks after its arrival", after)
	}
	if want := int64((long + chunk - 1) / chunk); chunks.Load() != want {
		t.Errorf("the long prompt took %d chunks, want %d", chunks.Load(), want)
	}
}

func TestLongPrefillStopsAReplyThatStreams(t *testing.T) {
	var order strings.Builder
	begun := make(chan struct{})
	var once sync.Once
	var h *harness
	net := &servetest.Network{Chunk: 10}
	net.Pass = func(segments []serve.Segment) error {
		if len(segments[0].Tokens) == 1 {
			order.WriteByte('d')
			once.Do(func() {
				close(begun)
				for h.Status().Active < 2 && h.Status().Queued < 1 {
					runtime.Gosched()
				}
			})
		} else {
			order.WriteByte('P')
		}
		return nil
	}
	h = start(t, net, serve.Options{Queue: 4})
	streaming := submit(t, h, request("streaming", 5, 50))
	<-begun
	long := submit(t, h, request("long", 100, 1))
	read(t, streaming)
	read(t, long)
	if !strings.Contains(order.String(), "PdPdPdPdPd") {
		t.Errorf("passes are not alternating: %s", order.String())
	}
}

func TestTwoRepliesTakeTwoPassesAToken(t *testing.T) {
	var together atomic.Int64
	var h *harness
	net := &servetest.Network{}
	net.Pass = func(segments []serve.Segment) error {
		if len(segments) == 2 {
			together.Add(1)
		}
		for h.Status().Active < 2 && h.Status().Queued < 1 && len(segments[0].Tokens) > 1 && net.Passes() == 1 {
			runtime.Gosched()
		}
		return nil
	}
	h = start(t, net, serve.Options{Queue: 4})
	a, b := submit(t, h, request("a", 3, 30)), submit(t, h, request("b", 4, 30))
	textA, _, _ := read(t, a)
	textB, _, _ := read(t, b)
	if together.Load() < 20 {
		t.Errorf("only %d passes carried both replies", together.Load())
	}
	if textA != textB || !strings.HasPrefix(textA, "bcdef") {
		t.Errorf("replies %q and %q", textA, textB)
	}
}

func TestCancelCostsMoreThanOnePass(t *testing.T) {
	tests := []struct {
		name         string
		cancelAtPass int64
		promptTokens int
	}{
		{"in prefill, first chunk", 1, 1000},
		{"in prefill, fifth chunk", 5, 1000},
		{"in decode, first token", 2, 10},
		{"in decode, later", 20, 10},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var passes atomic.Int64
			net := &servetest.Network{Chunk: 100}
			net.Pass = func([]serve.Segment) error {
				if passes.Add(1) == test.cancelAtPass {
					cancel() // while this pass runs
				}
				return nil
			}
			h := start(t, net, serve.Options{Queue: 4})
			reply, err := h.Submit(ctx, request("x", test.promptTokens, 500))
			if err != nil {
				t.Fatal(err)
			}
			_, _, end := read(t, reply)
			if end.Reason != serve.FinishCancelled {
				t.Errorf("ended as %s", end.Reason)
			}
			if passes.Load() > test.cancelAtPass {
				t.Errorf("%d passes, cancelled in pass %d", passes.Load(), test.cancelAtPass)
			}
			want := min(test.promptTokens, int(test.cancelAtPass)*100)
			if end.Usage.PromptTokens() != want || end.Usage.ComputedTokens != want {
				t.Errorf("usage %+v, computed should be %d", end.Usage, want)
			}
			// The next request works at once.
			if _, tokens, end := read(t, submit(t, h, request("y", 5, 3))); len(tokens) != 3 || end.Reason != serve.FinishLength {
				t.Errorf("the next reply has %d tokens and ended as %s", len(tokens), end.Reason)
			}
		})
	}
}

func TestCancelDuringAnothersTokenCostsAChunk(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var chunks, late atomic.Int64
	var h *harness
	net := &servetest.Network{Chunk: 10}
	net.Pass = func(segments []serve.Segment) error {
		switch n := len(segments[0].Tokens); {
		case n == 10:
			chunks.Add(1)
			if ctx.Err() != nil {
				late.Add(1)
			}
		case n == 1 && chunks.Load() == 3:
			cancel() // while the other reply's token is computed
		case n == 5:
			for h.Status().Queued == 0 && h.Status().Active < 2 { // the long prompt is there before the short one's reply begins
				runtime.Gosched()
			}
		}
		return nil
	}
	h = start(t, net, serve.Options{Queue: 4})
	streaming := submit(t, h, request("streaming", 5, 50))
	long, err := h.Submit(ctx, request("long", 1000, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, end := read(t, long); end.Reason != serve.FinishCancelled || end.Usage.ComputedTokens != 30 {
		t.Errorf("ended as %+v", end)
	}
	read(t, streaming)
	if chunks.Load() != 3 || late.Load() != 0 {
		t.Errorf("%d chunks, %d of them for nobody", chunks.Load(), late.Load())
	}
}

// hold makes the first pass wait until the returned function is called.
func hold(net *servetest.Network) (entered chan struct{}, release func()) {
	entered, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	net.Pass = func([]serve.Segment) error {
		once.Do(func() { close(entered); <-open })
		return nil
	}
	return entered, func() { close(open) }
}

func TestQueueGrowsBeyondItsBound(t *testing.T) {
	net := &servetest.Network{}
	entered, release := hold(net)
	h := start(t, net, serve.Options{Parallel: 1, Queue: 2})
	replies := []*serve.Reply{submit(t, h, request("running", 5, 2))}
	<-entered
	ctx, leave := context.WithCancel(context.Background())
	leaving, err := h.Submit(ctx, request("leaving", 5, 2))
	if err != nil {
		t.Fatal(err)
	}
	replies = append(replies, submit(t, h, request("waiting", 5, 2)))

	var full *serve.QueueFullError
	if _, err := h.Submit(context.Background(), request("one too many", 5, 2)); !errors.As(err, &full) {
		t.Fatalf("got %v", err)
	} else if full.Waiting != 2 || full.RetryAfter < time.Second || full.RetryAfter%time.Second != 0 {
		t.Errorf("%+v", full)
	}
	// Who leaves the queue makes room although the network is still busy.
	leave()
	if _, _, end := read(t, leaving); end.Reason != serve.FinishCancelled || end.Usage != (serve.Usage{}) {
		t.Errorf("left as %+v", end)
	}
	replies = append(replies, submit(t, h, request("in its place", 5, 2)))
	release()
	for _, reply := range replies {
		if text, _, end := read(t, reply); text != "bc" || end.Reason != serve.FinishLength {
			t.Errorf("%q, %+v", text, end)
		}
	}
}

// A place comes free when a running request ends; how long the running ones have taken already tells more than the mean.
func TestRetryAfterForgetsWhatRuns(t *testing.T) {
	tests := []struct {
		name    string
		earlier time.Duration // that a request before took; 0: there was none
		ran     time.Duration
		want    time.Duration
	}{
		{"just begun, nothing known", 0, 0, time.Second},
		{"ran long, nothing known", 0, 28 * time.Second, 14 * time.Second},
		{"just begun, requests take 20 s", 20 * time.Second, 0, 20 * time.Second},
		{"half done", 20 * time.Second, 5 * time.Second, 15 * time.Second},
		{"far beyond the mean", 2 * time.Second, 28 * time.Second, 14 * time.Second},
		{"beyond all bounds", 2 * time.Second, time.Hour, time.Minute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var clock atomic.Int64
			net, entered, open := &servetest.Network{}, make(chan struct{}, 10), make(chan struct{})
			net.Pass = func([]serve.Segment) error { entered <- struct{}{}; <-open; return nil }
			h := start(t, net, serve.Options{Parallel: 1, Queue: 1, Now: func() time.Time { return time.Unix(0, clock.Load()) }})
			if test.earlier > 0 {
				earlier := submit(t, h, request("earlier", 5, 1))
				<-entered
				clock.Add(int64(test.earlier))
				open <- struct{}{}
				read(t, earlier)
			}
			running := submit(t, h, request("running", 5, 1))
			<-entered
			waiting := submit(t, h, request("waiting", 5, 1))
			clock.Add(int64(test.ran))
			var full *serve.QueueFullError
			if _, err := h.Submit(context.Background(), request("one too many", 5, 1)); !errors.As(err, &full) || full.RetryAfter != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
			close(open)
			read(t, running)
			read(t, waiting)
		})
	}
}

func TestReplyEndsWhereItShould(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*serve.Request)
		next    func([]int32) int32
		window  int
		text    string
		reason  serve.FinishReason
		tokens  int
		windows bool
	}{
		{name: "max tokens", change: func(r *serve.Request) { r.MaxTokens = 4 }, text: "bcde", reason: serve.FinishLength, tokens: 4},
		{name: "end token", next: func(h []int32) int32 {
			if len(h) == 12 {
				return end
			}
			return counting(h)
		}, text: "bc", reason: serve.FinishStop, tokens: 3},
		{name: "window", window: 15, text: "bcdef", reason: serve.FinishLength, tokens: 5, windows: true},
		{name: "max tokens beyond the window", change: func(r *serve.Request) { r.MaxTokens = 50 }, window: 15, text: "bcdef", reason: serve.FinishLength, tokens: 5, windows: true},
		{name: "stop text cut by tokens", change: func(r *serve.Request) { r.Stop = []string{"efg"} }, text: "bcd", reason: serve.FinishStop, tokens: 6},
		{name: "stop text that begins twice", change: func(r *serve.Request) { r.Stop = []string{"cdx", "defgh"} }, text: "bc", reason: serve.FinishStop, tokens: 7},
		{name: "earliest of two stop texts", change: func(r *serve.Request) { r.Stop = []string{"fg", "ef"} }, text: "bcd", reason: serve.FinishStop, tokens: 5},
		{name: "held text comes out at the end", change: func(r *serve.Request) { r.Stop = []string{"defz"}; r.MaxTokens = 5 }, text: "bcdef", reason: serve.FinishLength, tokens: 5},
		{name: "watched text", change: func(r *serve.Request) {
			r.Watch = func(text string, _ bool) bool { return text == "d" }
		}, text: "bcd", reason: serve.FinishStop, tokens: 3},
		{name: "watched end of a reply that ran out", change: func(r *serve.Request) {
			r.MaxTokens, r.Watch = 2, func(_ string, final bool) bool { return final }
		}, text: "bc", reason: serve.FinishStop, tokens: 2},
		{name: "opening", change: func(r *serve.Request) { r.Opening = []int32{20, 21}; r.MaxTokens = 4 }, text: "uvwx", reason: serve.FinishLength, tokens: 4},
		{name: "opening longer than max tokens", change: func(r *serve.Request) { r.Opening = []int32{20, 21, 22}; r.MaxTokens = 2 }, text: "uv", reason: serve.FinishLength, tokens: 2},
		{name: "mask", change: func(r *serve.Request) {
			r.MaxTokens = 3
			r.Mask = func(reply []int32) sample.Mask {
				m := sample.NewMask(vocab)
				m.Allow(int32(10 + len(reply)))
				return m
			}
		}, text: "klm", reason: serve.FinishLength, tokens: 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := start(t, &servetest.Network{Next: test.next, Window: test.window, Chunk: 4}, serve.Options{Queue: 1})
			r := request("x", 10, 0)
			if test.change != nil {
				test.change(&r)
			}
			text, tokens, end := read(t, submit(t, h, r))
			if text != test.text || end.Reason != test.reason || end.Windowed != test.windows {
				t.Errorf("got %q, %+v", text, end)
			}
			if end.Usage.CompletionTokens != test.tokens || len(tokens) > test.tokens {
				t.Errorf("%d tokens counted, %d delivered, want %d", end.Usage.CompletionTokens, len(tokens), test.tokens)
			}
			if end.Usage.PromptTokens() != 10 {
				t.Errorf("prompt counted as %d", end.Usage.PromptTokens())
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	h := start(t, &servetest.Network{Window: 20}, serve.Options{Queue: 1})
	var long *serve.PromptTooLongError
	if _, err := h.Submit(context.Background(), request("x", 20, 1)); !errors.As(err, &long) || long.PromptTokens != 20 || long.WindowTokens != 20 {
		t.Errorf("a prompt that fills the window: %v", err)
	}
	if _, err := h.Submit(context.Background(), request("x", 0, 1)); !errors.Is(err, serve.ErrEmptyPrompt) {
		t.Errorf("an empty prompt: %v", err)
	}
	bad := request("x", 5, 1)
	bad.Sampling.TopP = 0
	var field *sample.FieldError
	if _, err := h.Submit(context.Background(), bad); !errors.As(err, &field) {
		t.Errorf("bad sampling: %v", err)
	}
	if _, tokens, _ := read(t, submit(t, h, request("x", 19, 5))); len(tokens) != 1 {
		t.Errorf("a prompt one short of the window gives %d tokens", len(tokens))
	}
}

func TestPanicEndsMoreThanItsRequest(t *testing.T) {
	net := &servetest.Network{}
	var broken atomic.Bool
	net.Pass = func(segments []serve.Segment) error {
		if broken.Load() && len(segments[0].Tokens) == 7 {
			panic("seven tokens")
		}
		return nil
	}
	broken.Store(true)
	h := start(t, net, serve.Options{Queue: 8})
	for range 5 { // a good pass between them: never a reason to give up
		_, _, end := read(t, submit(t, h, request("bad", 7, 5)))
		var p *serve.PanicError
		if end.Reason != serve.FinishError || !errors.As(end.Err, &p) || fmt.Sprint(p.Value) != "seven tokens" || len(p.Stack) == 0 {
			t.Fatalf("ended as %+v", end)
		}
		if text, _, end := read(t, submit(t, h, request("good", 6, 2))); text != "bc" || end.Reason != serve.FinishLength {
			t.Fatalf("the next request: %q, %+v", text, end)
		}
	}
	for _, test := range []struct {
		name   string
		change func(*serve.Request)
	}{
		{"mask", func(r *serve.Request) { r.Mask = func([]int32) sample.Mask { panic("mask") } }},
		{"decoder", func(r *serve.Request) { r.Text = nil }},
	} {
		r := request("bad "+test.name, 6, 5)
		test.change(&r)
		if _, _, end := read(t, submit(t, h, r)); end.Reason != serve.FinishError {
			t.Errorf("%s: ended as %+v", test.name, end)
		}
	}
	var err error
	for range 3 {
		read(t, submit(t, h, request("bad", 7, 5)))
	}
	if err = h.waitRun(t); err == nil || !strings.Contains(err.Error(), "3 passes in a row") {
		t.Errorf("after three panics in a row Run gives %v", err)
	}
	if _, late := h.Submit(context.Background(), request("late", 5, 1)); late == nil || late.Error() != err.Error() {
		t.Errorf("after the end Submit gives %v", late)
	}
	if h.Status().Running || net.Open() != 0 {
		t.Errorf("status %+v, %d sequences open", h.Status(), net.Open())
	}
}

func TestNetworkErrorReachesItsRequest(t *testing.T) {
	broken := errors.New("no memory for a page")
	var once atomic.Bool
	net := &servetest.Network{Pass: func([]serve.Segment) error {
		if once.CompareAndSwap(false, true) {
			return broken
		}
		return nil
	}}
	h := start(t, net, serve.Options{Queue: 1})
	if _, _, end := read(t, submit(t, h, request("x", 5, 1))); !errors.Is(end.Err, broken) {
		t.Errorf("ended as %+v", end)
	}
	if _, _, end := read(t, submit(t, h, request("y", 5, 1))); end.Reason != serve.FinishLength {
		t.Errorf("the next ended as %+v", end)
	}
}

func TestNoRoomForASequenceWaitsForOne(t *testing.T) {
	net := &servetest.Network{Sequences: 1}
	entered, release := hold(net)
	h := start(t, net, serve.Options{Parallel: 2, Queue: 4})
	a := submit(t, h, request("a", 5, 3))
	<-entered
	b := submit(t, h, request("b", 5, 3))
	release()
	for _, reply := range []*serve.Reply{a, b} {
		if text, _, end := read(t, reply); text != "bcd" {
			t.Errorf("%q, %+v", text, end)
		}
	}
	// Where nothing runs that could make room, the request is told.
	net.Sequences = 1
	extra, err := net.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, end := read(t, submit(t, h, request("c", 5, 3))); !errors.Is(end.Err, servetest.ErrNoRoom) {
		t.Errorf("ended as %+v", end)
	}
	extra.Close()
}

func TestDrainCutsOrAccepts(t *testing.T) {
	net := &servetest.Network{}
	entered, release := hold(net)
	h := start(t, net, serve.Options{Parallel: 1, Queue: 4})
	running := submit(t, h, request("running", 5, 30))
	<-entered
	waiting := submit(t, h, request("waiting", 5, 3))
	h.Drain()
	if _, err := h.Submit(context.Background(), request("late", 5, 3)); !errors.Is(err, serve.ErrDraining) {
		t.Errorf("a drain accepts: %v", err)
	}
	if !h.Status().Draining {
		t.Error("the status does not say that it drains")
	}
	release()
	for _, reply := range []*serve.Reply{running, waiting} {
		if _, _, end := read(t, reply); end.Reason != serve.FinishLength {
			t.Errorf("a drain cut: %+v", end)
		}
	}
	if err := h.waitRun(t); err != nil {
		t.Errorf("a drained engine gives %v", err)
	}
}

func TestStopLeavesARequestUntold(t *testing.T) {
	net := &servetest.Network{}
	entered, release := hold(net)
	h := start(t, net, serve.Options{Parallel: 1, Queue: 4})
	running := submit(t, h, request("running", 500, 3000))
	<-entered
	waiting := submit(t, h, request("waiting", 5, 3))
	h.cancel()
	release()
	for _, reply := range []*serve.Reply{running, waiting} {
		if _, _, end := read(t, reply); end.Reason != serve.FinishError || !errors.Is(end.Err, serve.ErrStopped) {
			t.Errorf("ended as %+v", end)
		}
	}
	if err := h.waitRun(t); err != nil {
		t.Errorf("a stopped engine gives %v", err)
	}
}

func TestSeedDoesNotRepeat(t *testing.T) {
	h := start(t, &servetest.Network{}, serve.Options{Queue: 4})
	say := func(seed uint64) string {
		r := request("x", 5, 60)
		r.Sampling.Temperature, r.Seed = 2, seed
		text, _, _ := read(t, submit(t, h, r))
		return text
	}
	if a, b := say(5), say(5); a != b {
		t.Errorf("one seed, two replies: %q and %q", a, b)
	}
	if a, b := say(5), say(6); a == b {
		t.Errorf("two seeds, one reply: %q", a)
	}
}

func TestPhasesDoNotAddUp(t *testing.T) {
	var now atomic.Int64
	net := &servetest.Network{Pass: func([]serve.Segment) error { now.Add(int64(time.Second)); return nil }}
	h := start(t, net, serve.Options{Queue: 4, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	r := request("x", 250, 6)
	r.Tokenize = 3 * time.Millisecond
	_, _, end := read(t, submit(t, h, r))
	want := serve.Times{Tokenize: 3 * time.Millisecond, Prefill: 3 * time.Second, Decode: 5 * time.Second}
	if end.Times != want {
		t.Errorf("times %+v, want %+v", end.Times, want)
	}
}

func TestManyClientsLeakOrDrift(t *testing.T) {
	before := runtime.NumGoroutine()
	net := &servetest.Network{Chunk: 16}
	h := start(t, net, serve.Options{Queue: 30})
	var group sync.WaitGroup
	var accepted atomic.Int64
	for client := range 30 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			for range 35 {
				ctx, cancel := context.WithCancel(context.Background())
				reply, err := h.Submit(ctx, request("x", 1+random.IntN(100), 1+random.IntN(20)))
				if err != nil {
					t.Error(err)
					cancel()
					return
				}
				accepted.Add(1)
				leaveAfter := random.IntN(40)
				for events := 0; ; {
					<-reply.Ready()
					batch := reply.Take()
					if slices.ContainsFunc(batch, func(e serve.Event) bool { return e.End != nil }) {
						break
					}
					if events += len(batch); events > leaveAfter {
						cancel()
					}
				}
				cancel()
			}
		})
	}
	group.Wait()
	h.Drain()
	if err := h.waitRun(t); err != nil {
		t.Fatal(err)
	}
	if len(h.summaries) != int(accepted.Load()) || accepted.Load() != 30*35 {
		t.Errorf("%d accepted, %d ended", accepted.Load(), len(h.summaries))
	}
	for _, s := range h.summaries {
		if s.Reason != serve.FinishCancelled && s.Usage.PromptTokens() != s.Length {
			t.Errorf("%s: prompt %d of %d tokens", s.Reason, s.Usage.PromptTokens(), s.Length)
		}
	}
	if net.Open() != 0 || h.Status().Active != 0 || h.Status().Queued != 0 {
		t.Errorf("%d sequences open, status %+v", net.Open(), h.Status())
	}
	for tries := 0; runtime.NumGoroutine() > before+2; tries++ {
		if tries > 1000 {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTokenizerOfAnotherModelIsTaken(t *testing.T) {
	net := &servetest.Network{Vocab: 10, Window: 100, Chunk: 10}
	if _, err := serve.New(net, serve.Options{Parallel: 1, VocabTokens: 11}); err == nil || !strings.Contains(err.Error(), "11") {
		t.Errorf("got %v", err)
	}
}
