package serve_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/engine/pass"
	"slipway/engine/serve"
	"slipway/engine/serve/servetest"
)

func TestShortRequestStartsWithinTwoChunksOfALongPrefill(t *testing.T) {
	const chunk, long = 512, 3000
	var h *harness
	var chunks, seen atomic.Int64 // chunks of the long prompt begun; those begun when the short one's pass came
	var short *serve.Reply
	second := make(chan struct{})
	net := &servetest.Network{Chunk: chunk}
	net.Pass = func(segments []pass.Segment) error {
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

func TestReplyStreamsOnDuringALongPrefill(t *testing.T) {
	var order strings.Builder
	begun := make(chan struct{})
	var once sync.Once
	var h *harness
	net := &servetest.Network{Chunk: 10}
	net.Pass = func(segments []pass.Segment) error {
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

func TestTwoRepliesShareThePassesOfTheirTokens(t *testing.T) {
	var together atomic.Int64
	var h *harness
	net := &servetest.Network{}
	net.Pass = func(segments []pass.Segment) error {
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

func TestSeedRepeatsAReply(t *testing.T) {
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

func TestPhasesAddUp(t *testing.T) {
	var now atomic.Int64
	net := &servetest.Network{Pass: func([]pass.Segment) error { now.Add(int64(time.Second)); return nil }}
	h := start(t, net, serve.Options{Queue: 4, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	r := request("x", 250, 6)
	r.Tokenize = 3 * time.Millisecond
	_, _, end := read(t, submit(t, h, r))
	want := serve.Times{Tokenize: 3 * time.Millisecond, Prefill: 3 * time.Second, Decode: 5 * time.Second}
	if end.Times != want {
		t.Errorf("times %+v, want %+v", end.Times, want)
	}
}

func TestManyClientsLeakNothing(t *testing.T) {
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

func TestTokenizerOfAnotherModelIsRefused(t *testing.T) {
	net := &servetest.Network{Vocab: 10, Window: 100, Chunk: 10}
	if _, err := serve.New(net, serve.Options{Parallel: 1, VocabTokens: 11}); err == nil ||
		!strings.Contains(err.Error(), "11") {
		t.Errorf("got %v", err)
	}
}
