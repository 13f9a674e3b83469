package serve_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"slipway/engine/pass"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/serve/servetest"
)

func TestCancelCostsAtMostOnePass(t *testing.T) {
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
			net.Pass = func([]pass.Segment) error {
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
			if _, tokens, end := read(t, submit(t, h, request("y", 5, 3))); len(tokens) != 3 ||
				end.Reason != serve.FinishLength {
				t.Errorf("the next reply has %d tokens and ended as %s", len(tokens), end.Reason)
			}
		})
	}
}

func TestCancelDuringAnothersTokenCostsNoChunk(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var chunks, late atomic.Int64
	var h *harness
	net := &servetest.Network{Chunk: 10}
	net.Pass = func(segments []pass.Segment) error {
		switch n := len(segments[0].Tokens); {
		case n == 10:
			chunks.Add(1)
			if ctx.Err() != nil {
				late.Add(1)
			}
		case n == 1 && chunks.Load() == 3:
			cancel() // while the other reply's token is computed
		case n == 5:
			// the long prompt is there before the short one's reply begins
			for h.Status().Queued == 0 && h.Status().Active < 2 {
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
		t.Errorf("%d chunks, %d of them after their client had gone", chunks.Load(), late.Load())
	}
}

func TestReplyEndsAtTheFirstReasonToEnd(t *testing.T) {
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
		{name: "max tokens", change: func(r *serve.Request) { r.MaxTokens = 4 }, text: "bcde",
			reason: serve.FinishLength, tokens: 4},
		{name: "end token", next: func(h []int32) int32 {
			if len(h) == 12 {
				return end
			}
			return counting(h)
		}, text: "bc", reason: serve.FinishStop, tokens: 3},
		{name: "window", window: 15, text: "bcdef", reason: serve.FinishLength, tokens: 5, windows: true},
		{name: "max tokens beyond the window", change: func(r *serve.Request) { r.MaxTokens = 50 }, window: 15,
			text: "bcdef", reason: serve.FinishLength, tokens: 5, windows: true},
		{name: "stop text cut by tokens", change: func(r *serve.Request) { r.Stop = []string{"efg"} }, text: "bcd",
			reason: serve.FinishStop, tokens: 6},
		{name: "stop text that begins twice", change: func(r *serve.Request) { r.Stop = []string{"cdx", "defgh"} },
			text: "bc", reason: serve.FinishStop, tokens: 7},
		{name: "earliest of two stop texts", change: func(r *serve.Request) { r.Stop = []string{"fg", "ef"} },
			text: "bcd", reason: serve.FinishStop, tokens: 5},
		{name: "held text comes out at the end", change: func(r *serve.Request) {
			r.Stop = []string{"defz"}
			r.MaxTokens = 5
		}, text: "bcdef", reason: serve.FinishLength, tokens: 5},
		{name: "watched text", change: func(r *serve.Request) {
			r.Watch = func(text string, _ serve.FinishReason) bool { return text == "d" }
		}, text: "bcd", reason: serve.FinishStop, tokens: 3},
		{name: "watched end of a reply that ran out", change: func(r *serve.Request) {
			r.MaxTokens, r.Watch = 2, func(_ string, reason serve.FinishReason) bool {
				return reason == serve.FinishLength
			}
		}, text: "bc", reason: serve.FinishStop, tokens: 2},
		{name: "opening", change: func(r *serve.Request) { r.Opening = []int32{20, 21}; r.MaxTokens = 4 }, text: "uvwx",
			reason: serve.FinishLength, tokens: 4},
		{name: "opening longer than max tokens", change: func(r *serve.Request) {
			r.Opening = []int32{20, 21, 22}
			r.MaxTokens = 2
		}, text: "uv", reason: serve.FinishLength, tokens: 2},
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
				t.Errorf("%d tokens counted, %d delivered, want %d", end.Usage.CompletionTokens, len(tokens),
					test.tokens)
			}
			if end.Usage.PromptTokens() != 10 {
				t.Errorf("prompt counted as %d", end.Usage.PromptTokens())
			}
		})
	}
}

func TestPanicEndsOnlyItsRequest(t *testing.T) {
	net := &servetest.Network{}
	var broken atomic.Bool
	net.Pass = func(segments []pass.Segment) error {
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
		if end.Reason != serve.FinishError || !errors.As(end.Err, &p) || fmt.Sprint(p.Value) != "seven tokens" ||
			len(p.Stack) == 0 {
			t.Fatalf("ended as %+v", end)
		}
		if text, _, end := read(t, submit(t, h, request("good", 6, 2))); text != "bc" ||
			end.Reason != serve.FinishLength {
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
	net := &servetest.Network{Pass: func([]pass.Segment) error {
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

func TestDrainFinishesRepliesAndRefusesNewRequests(t *testing.T) {
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

func TestStopEndsEveryRequest(t *testing.T) {
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
