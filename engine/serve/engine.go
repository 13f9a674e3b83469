package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"slipway/engine/draft"
	"slipway/engine/memory/keep"
	"slipway/engine/sample"
)

// Options of an engine.
type Options struct {
	Parallel    int     // requests worked on at once; at least 1
	Queue       int     // requests that may wait behind them; 0 means none
	VocabTokens int     // ids of the tokenizer; the network's rows above are never chosen
	EndTokens   []int32 // ids that end a reply

	Draft       draft.Proposer // proposes tokens of replies; nil: each is computed by itself
	DraftTokens int            // proposed at a time, in [1, Draft.Most()]; 0: as many as it can

	Keeper *keep.Keeper // nil: nothing is kept between requests

	IdleAfter time.Duration // without work, after which the network sleeps; 0: never

	Memory func() Memory // asked before a prompt is begun, from any goroutine; nil: memory is never short
	// called when a first request starts, released after the last one ends; may be nil
	KeepAwake func() (release func())

	Now   func() time.Time
	Log   *slog.Logger  // never sees text of prompts or replies
	OnEnd func(Summary) // called once for each submitted request, from any goroutine; may be nil
}

// Engine answers requests with one network.
type Engine struct {
	net     Network
	opt     Options
	sampler *sample.Sampler
	ends    map[int32]bool

	mu       sync.Mutex
	waiting  []*job
	draining bool
	stopped  error         // not nil once Run has returned
	reload   *reloading    // pending; nil: none
	wake     chan struct{} // one slot: filled when waiting, draining or reload changed

	status      status
	drop        atomic.Bool  // DropPoints was called
	draftTokens atomic.Int64 // see Options.DraftTokens and SetDraftTokens
	ledger      *Ledger
	// float64 bits: running mean of a request's seconds from admission to end, for Retry-After
	averageS atomic.Uint64

	active []*job // written by Run's goroutine under the lock, so that it reads without and others with it

	// Only Run's goroutine:
	asleep  bool   // the network
	release func() // lets the machine sleep again; nil: it may sleep
	turn    uint64
	panics  int // passes in a row that panicked

	decoder decoder
	jobs    []*job // of the running decode step
}

// status is read without any lock.
type status struct {
	active, queued    atomic.Int64
	draining, running atomic.Bool
}

// Status is what the engine does at this moment.
type Status struct {
	Running  bool // false once Run has ended
	Active   int  // requests in prefill or decode
	Queued   int
	Draining bool
}

// New makes an engine. It answers once [Engine.Run] runs.
func New(net Network, opt Options) (*Engine, error) {
	switch {
	case opt.Parallel < 1:
		return nil, fmt.Errorf("parallel is %d; it must be at least 1", opt.Parallel)
	case opt.Queue < 0:
		return nil, fmt.Errorf("queue is %d; it must be 0 or more", opt.Queue)
	case opt.VocabTokens > net.VocabSize():
		return nil, fmt.Errorf("the tokenizer has %d ids, the network only %d rows: tokenizer.json does not belong "+
			"to these weights", opt.VocabTokens, net.VocabSize())
	case net.ChunkTokens() < 1 || net.WindowTokens() < 2:
		return nil, fmt.Errorf("a chunk of %d and a window of %d tokens cannot be served", net.ChunkTokens(),
			net.WindowTokens())
	}
	e := &Engine{net: net, opt: opt, sampler: sample.NewSampler(opt.VocabTokens), ends: map[int32]bool{},
		wake: make(chan struct{}, 1)}
	for _, id := range opt.EndTokens {
		e.ends[id] = true
	}
	e.decoder = &singleDecoder{e: e}
	if opt.Draft != nil {
		e.decoder = &draftDecoder{e: e}
		e.draftTokens.Store(int64(cmp.Or(opt.DraftTokens, opt.Draft.Most())))
	}
	e.ledger = &Ledger{now: opt.Now}
	e.status.running.Store(true)
	return e, nil
}

// WindowTokens is the most tokens that prompt and reply have together.
func (e *Engine) WindowTokens() int { return e.net.WindowTokens() }

// Ledger is for watching and cancelling requests.
func (e *Engine) Ledger() *Ledger { return e.ledger }

// Status takes no lock.
func (e *Engine) Status() Status {
	return Status{e.status.running.Load(), int(e.status.active.Load()), int(e.status.queued.Load()),
		e.status.draining.Load()}
}

// Drain refuses new requests from now on; Run returns when the accepted ones have ended.
func (e *Engine) Drain() {
	e.mu.Lock()
	e.draining = true
	e.status.draining.Store(true)
	e.mu.Unlock()
	e.poke()
}

func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run answers requests until ctx ends, which cancels running requests, or until a drain is complete; both give nil. Any
// other end is an error: the network is broken. It owns the network meanwhile.
func (e *Engine) Run(ctx context.Context) (err error) {
	defer func() { e.stop(err) }()
	for {
		e.dropCancelled()
		e.relieve()
		if ctx.Err() != nil {
			return nil // shutdown wins over a pending reload
		}
		e.reloadWhenAsked()
		e.wakeUp()
		e.admit()
		e.stayAwake()
		if len(e.active) == 0 {
			if e.drained() {
				return nil
			}
			if e.idle(ctx.Done()) {
				return nil
			}
			continue
		}
		if err := e.decodeStep(ctx); err != nil {
			return err
		}
		e.dropCancelled()
		if err := e.prefillChunk(ctx); err != nil {
			return err
		}
	}
}

// drained reports whether the engine drains and no request waits.
func (e *Engine) drained() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining && len(e.waiting) == 0
}
