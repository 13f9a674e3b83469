package serve_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"slipway/engine/pass"
	"slipway/engine/serve"
	"slipway/engine/serve/servetest"
)

// sleeper is a network that counts how often it is loaded.
type sleeper struct {
	*servetest.Network
	slept, woken int
	broken       error
}

func (s *sleeper) Sleep() {
	if s.Open() > 0 {
		panic("unloaded under an open sequence")
	}
	s.slept++
}

func (s *sleeper) Wake() error {
	s.woken++
	return s.broken
}

func startSleeper(t *testing.T, net *servetest.Network) (*serve.Engine, *sleeper, context.CancelFunc) {
	t.Helper()
	net.Vocab, net.Window, net.Chunk, net.Next = vocab, 10_000, 100, counting
	s := &sleeper{Network: net}
	e, err := serve.New(s, serve.Options{Parallel: 2, Queue: 4, VocabTokens: vocab, EndTokens: []int32{end},
		Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ran
	})
	return e, s, cancel
}

func TestReloadWaitsForRunningRequestsOrIsRefused(t *testing.T) {
	let := make(chan struct{}, 100)
	e, s, _ := startSleeper(t, &servetest.Network{Pass: func([]pass.Segment) error { <-let; return nil }})
	submit := func() *serve.Reply {
		r, err := e.Submit(t.Context(), request("", 4, 3))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	running := submit()
	for e.Status().Active == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := e.Reload(t.Context(), false); !errors.Is(err, serve.ErrBusy) {
		t.Errorf("reload beside a request: %v", err)
	}
	taken, takeBack := context.WithCancel(t.Context())
	back := make(chan error, 1)
	go func() { back <- e.Reload(taken, true) }()
	for !errors.Is(e.Reload(t.Context(), false), serve.ErrReloading) {
		time.Sleep(time.Millisecond)
	}
	takeBack()
	let <- struct{}{}
	if err := <-back; !errors.Is(err, context.Canceled) {
		t.Errorf("a reload that was taken back: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- e.Reload(t.Context(), true) }()
	for !errors.Is(e.Reload(t.Context(), false), serve.ErrReloading) {
		time.Sleep(time.Millisecond)
	}
	waiting := submit()
	for range 20 {
		let <- struct{}{}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, r := range []*serve.Reply{running, waiting} {
		if end := await(t, r); end.Reason != serve.FinishLength {
			t.Errorf("a request ended with %s: %v", end.Reason, end.Err)
		}
	}
	if s.slept != 1 || s.woken != 1 {
		t.Errorf("unloaded %d times, loaded %d times", s.slept, s.woken)
	}
}

func TestReloadThatFailsIsTriedAgainWithTheNextRequest(t *testing.T) {
	e, s, _ := startSleeper(t, &servetest.Network{})
	s.broken = errors.New("the files are gone")
	if err := e.Reload(t.Context(), false); !errors.Is(err, s.broken) {
		t.Fatalf("got %v", err)
	}
	s.broken = nil
	r, err := e.Submit(t.Context(), request("", 4, 3))
	if err != nil {
		t.Fatal(err)
	}
	if end := await(t, r); end.Reason != serve.FinishLength {
		t.Errorf("the next request ended with %s: %v", end.Reason, end.Err)
	}
}

func TestShutdownWinsOverAPendingReload(t *testing.T) {
	e, _, stop := startSleeper(
		t, &servetest.Network{Pass: func([]pass.Segment) error { time.Sleep(time.Millisecond); return nil }})
	if _, err := e.Submit(t.Context(), request("", 4, 9000)); err != nil {
		t.Fatal(err)
	}
	for e.Status().Active == 0 {
		time.Sleep(time.Millisecond)
	}
	done := make(chan error, 1)
	go func() { done <- e.Reload(t.Context(), true) }()
	for !errors.Is(e.Reload(t.Context(), false), serve.ErrReloading) {
		time.Sleep(time.Millisecond)
	}
	stop()
	select {
	case err := <-done:
		if !errors.Is(err, serve.ErrStopped) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no reload got an answer")
	}
}

func await(t *testing.T, r *serve.Reply) *serve.End {
	t.Helper()
	for {
		select {
		case <-r.Ready():
			for _, e := range r.Take() {
				if e.End != nil {
					return e.End
				}
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no end")
		}
	}
}
