package serve_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"slipway/engine/pass"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/serve/servetest"
)

func TestQueueStaysWithinItsBound(t *testing.T) {
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

// A place comes free when a running request ends; how long the running ones have taken already tells more than the
// mean.
func TestRetryAfterCountsWhatRuns(t *testing.T) {
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
			net.Pass = func([]pass.Segment) error { entered <- struct{}{}; <-open; return nil }
			h := start(t, net, serve.Options{Parallel: 1, Queue: 1, Now: func() time.Time {
				return time.Unix(0, clock.Load())
			}})
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
			if _, err := h.Submit(context.Background(), request("one too many", 5, 1)); !errors.As(err, &full) ||
				full.RetryAfter != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
			close(open)
			read(t, running)
			read(t, waiting)
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	h := start(t, &servetest.Network{Window: 20}, serve.Options{Queue: 1})
	var long *serve.PromptTooLongError
	if _, err := h.Submit(context.Background(), request("x", 20, 1)); !errors.As(err, &long) ||
		long.PromptTokens != 20 || long.WindowTokens != 20 {
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
	// If nothing runs that could make room, the request gets the error.
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
