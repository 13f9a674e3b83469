package serve_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"slipway/engine/serve"
	"slipway/engine/serve/servetest"
)

func TestPromptIsRefusedWhereMemoryRunsOut(t *testing.T) {
	net := &servetest.Network{}
	entered, release := hold(net)
	var level atomic.Int64
	h := start(t, net, serve.Options{Parallel: 1, Queue: 2, Memory: func() serve.Memory {
		return serve.Memory{Level: serve.MemoryLevel(level.Load()), FreeBytes: 1 << 30, TotalBytes: 16 << 30}
	}})
	running := submit(t, h, request("running", 5, 3))
	<-entered
	waiting := submit(t, h, request("waiting", 7, 3))
	level.Store(int64(serve.MemoryShort))
	third := submit(t, h, request("short", 5, 1)) // short of memory is no reason to refuse
	level.Store(int64(serve.MemoryCritical))
	var refused *serve.MemoryError
	if _, err := h.Submit(context.Background(), request("late", 9, 3)); !errors.As(err, &refused) ||
		refused.PromptTokens != 9 || refused.FreeBytes != 1<<30 || refused.RetryAfter <= 0 {
		t.Errorf("%v, wanted a MemoryError with its numbers", err)
	}
	release()
	if _, _, end := read(t, running); end.Reason != serve.FinishLength {
		t.Errorf("what ran ended with %v: %v", end.Reason, end.Err)
	}
	for _, r := range []*serve.Reply{waiting, third} {
		if _, _, end := read(t, r); end.Reason != serve.FinishError || !errors.As(end.Err, &refused) {
			t.Errorf("what waited ended with %v: %v", end.Reason, end.Err)
		}
	}
	level.Store(int64(serve.MemoryEnough))
	if _, _, end := read(t, submit(t, h, request("again", 5, 1))); end.Reason != serve.FinishLength {
		t.Errorf("%v: %v", end.Reason, end.Err)
	}
}

func TestMachineIsKeptAwakeOnlyDuringRequests(t *testing.T) {
	net := &servetest.Network{}
	entered, leave := hold(net)
	var awake, calls atomic.Int64
	released := make(chan struct{}, 8)
	h := start(t, net, serve.Options{Parallel: 2, KeepAwake: func() func() {
		awake.Add(1)
		calls.Add(1)
		return func() { awake.Add(-1); released <- struct{}{} }
	}})
	a := submit(t, h, request("a", 5, 2))
	<-entered
	b := submit(t, h, request("b", 5, 3))
	if awake.Load() != 1 {
		t.Errorf("%d assertions in a prefill", awake.Load())
	}
	leave()
	read(t, a)
	read(t, b)
	<-released
	if awake.Load() != 0 || calls.Load() != 1 {
		t.Errorf("%d assertions left of %d", awake.Load(), calls.Load())
	}
	net.Pass = nil
	h.Drain()
	h.waitRun(t)
	if awake.Load() != 0 {
		t.Errorf("%d assertions left after the end", awake.Load())
	}
}

// A prefill whose client has gone is stopped within its chunk, where the network can do so.
func TestCancelledPrefillIsStoppedWithinItsChunk(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	net := &servetest.Network{}
	net.Prefill = func(pass context.Context) error {
		cancel()
		<-pass.Done()
		return pass.Err()
	}
	h := start(t, net, serve.Options{})
	reply, err := h.Submit(ctx, request("left", 150, 2))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, end := read(t, reply); end.Reason != serve.FinishCancelled || end.Usage.ComputedTokens != 0 ||
		!errors.Is(end.Err, context.Canceled) {
		t.Errorf("%v, %d tokens computed: %v", end.Reason, end.Usage.ComputedTokens, end.Err)
	}
	net.Prefill = nil
	if _, _, end := read(t, submit(t, h, request("next", 10, 1))); end.Reason != serve.FinishLength {
		t.Errorf("the next one: %v, %v", end.Reason, end.Err)
	}
}

// Dropped points free pages of the pool; only the network can give their memory to the machine, and only between
// passes.
func TestShortMemoryIsReturnedToTheSystem(t *testing.T) {
	returned := make(chan struct{}, 8)
	net := &servetest.Network{Return: func() error { returned <- struct{}{}; return errors.New("not now") }}
	h := start(t, net, serve.Options{Parallel: 1})
	h.DropPoints()
	<-returned
	entered, leave := hold(net)
	running := submit(t, h, request("running", 5, 3))
	<-entered
	h.DropPoints()
	leave()
	if _, _, end := read(t, running); end.Reason != serve.FinishLength {
		t.Errorf("what ran ended with %v: %v", end.Reason, end.Err)
	}
	<-returned
}
