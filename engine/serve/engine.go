package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"slipway/engine/memory/keep"
	"slipway/engine/sample"
)

// Options of an engine.
type Options struct {
	Parallel    int     // requests worked on at once; at least 1
	Queue       int     // requests that may wait behind them; 0 means none
	VocabTokens int     // ids of the tokenizer; the network's rows above are never chosen
	EndTokens   []int32 // ids that end a reply

	Keeper *keep.Keeper // nil: nothing is kept between requests. Its sequences must implement keep.Sequence

	IdleAfter time.Duration // without work, after which a network that is a Sleeper sleeps; 0: never

	Memory    func() Memory           // asked before a prompt is begun, from any goroutine; nil: memory is never short
	KeepAwake func() (release func()) // called when the first of some requests is taken up, released after the last; may be nil

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
	reload   *reloading    // asked for, not done
	wake     chan struct{} // one slot: filled when waiting, draining or reload changed

	status   status
	drop     atomic.Bool // points that nothing uses are to be dropped
	ledger   *Ledger
	averageS atomic.Uint64 // float64 bits: running mean of a request's seconds from admission to end, for Retry-After

	active []*job // written by Run's goroutine under the lock, so that it reads without and others with it

	// Only Run's goroutine:
	asleep  bool   // the network
	release func() // lets the machine sleep again; nil: it may
	turn    uint64
	panics  int // passes in a row that panicked

	jobs     []*job // of the decode step under way, with their segments
	segments []Segment
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

// New makes an engine; it answers once [Engine.Run] runs.
func New(net Network, opt Options) (*Engine, error) {
	switch {
	case opt.Parallel < 1:
		return nil, fmt.Errorf("parallel is %d; it must be at least 1", opt.Parallel)
	case opt.Queue < 0:
		return nil, fmt.Errorf("queue is %d; it must be 0 or more", opt.Queue)
	case opt.VocabTokens > net.VocabSize():
		return nil, fmt.Errorf("the tokenizer has %d ids, the network only %d rows: tokenizer.json does not belong to these weights", opt.VocabTokens, net.VocabSize())
	case net.ChunkTokens() < 1 || net.WindowTokens() < 2:
		return nil, fmt.Errorf("a chunk of %d and a window of %d tokens cannot be served", net.ChunkTokens(), net.WindowTokens())
	}
	e := &Engine{net: net, opt: opt, sampler: sample.NewSampler(opt.VocabTokens), ends: map[int32]bool{}, wake: make(chan struct{}, 1)}
	for _, id := range opt.EndTokens {
		e.ends[id] = true
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
	return Status{e.status.running.Load(), int(e.status.active.Load()), int(e.status.queued.Load()), e.status.draining.Load()}
}

// Submit queues a request. It is dropped when ctx ends. Errors: *QueueFullError, *PromptTooLongError, *MemoryError,
// *sample.FieldError, ErrEmptyPrompt, ErrDraining, or the error that ended Run.
func (e *Engine) Submit(ctx context.Context, req Request) (*Reply, error) {
	if len(req.Prompt) == 0 {
		return nil, ErrEmptyPrompt
	}
	if err := req.Sampling.Check(e.opt.VocabTokens); err != nil {
		return nil, err
	}
	room := e.net.WindowTokens() - len(req.Prompt)
	if room < 1+len(req.Opening) {
		return nil, &PromptTooLongError{PromptTokens: len(req.Prompt), WindowTokens: e.net.WindowTokens()}
	}
	if err := e.tight(len(req.Prompt)); err != nil {
		return nil, err
	}
	if req.Entry == nil {
		req.Entry, ctx = e.ledger.Open(ctx, req.ID)
		defer req.Entry.Drop() // where it is refused
	}
	j := newJob(ctx, req, room, e.opt.Now())

	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.stopped != nil:
		return nil, e.stopped
	case e.draining:
		return nil, ErrDraining
	case len(e.waiting) >= e.opt.Queue+e.free():
		return nil, &QueueFullError{len(e.waiting), e.retryAfter()}
	}
	e.waiting = append(e.waiting, j)
	j.Entry.note(j, PhaseQueue)
	e.status.queued.Store(int64(len(e.waiting)))
	// The function runs in its own goroutine, so it may take the lock that is held here.
	j.unwatch = context.AfterFunc(j.reply.ctx, func() { e.leave(j) })
	e.poke()
	return j.reply, nil
}

// free is how many of the waiting will be taken up before the next pass. Called under the lock.
func (e *Engine) free() int { return max(0, e.opt.Parallel-int(e.status.active.Load())) }

// Drain refuses new requests from now on; Run returns when what was accepted has ended.
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

// Run answers requests until ctx ends, which cuts what is under way, or until a drain is complete; both give nil. Any
// other end is an error: the network is broken. It owns the network meanwhile.
func (e *Engine) Run(ctx context.Context) (err error) {
	defer func() { e.stop(err) }()
	for {
		e.dropCancelled()
		e.relieve()
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
		if ctx.Err() != nil {
			return nil
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

// drained reports whether a drain was asked for and nothing waits.
func (e *Engine) drained() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining && len(e.waiting) == 0
}

// stop ends everything after Run.
func (e *Engine) stop(err error) {
	cause := err
	if cause == nil {
		cause = ErrStopped
	}
	e.mu.Lock()
	e.stopped = cause
	waiting := e.waiting
	e.waiting = nil
	if e.reload != nil {
		e.reload.done <- cause
		e.reload = nil
	}
	e.status.queued.Store(0)
	e.status.running.Store(false)
	e.mu.Unlock()
	for _, j := range append(waiting, e.active...) {
		j.unwatch()
		e.end(j, FinishError, cause)
	}
	e.stayAwake()
}

// admit takes waiting requests up while there is room.
func (e *Engine) admit() {
	for len(e.active) < e.opt.Parallel && !e.holdsBack() {
		e.mu.Lock()
		if len(e.waiting) == 0 {
			e.mu.Unlock()
			return
		}
		j := e.waiting[0]
		seq, err := e.newSequence()
		if err != nil && len(e.active) > 0 {
			e.mu.Unlock() // memory comes back when one of those ends
			return
		}
		e.waiting = e.waiting[1:]
		j.admitted = e.opt.Now()
		j.seq = seq
		e.active = append(e.active, j)
		e.status.active.Store(int64(len(e.active)))
		e.status.queued.Store(int64(len(e.waiting)))
		e.mu.Unlock()
		j.unwatch()
		if err == nil {
			err = e.tight(len(j.Prompt)) // memory may have run out while it waited
		}
		if err == nil {
			err = e.begin(j)
		}
		j.Entry.note(j, PhasePrefill)
		if err != nil {
			e.end(j, FinishError, err)
		}
	}
}

// newSequence is the network's, with a panic as an error.
func (e *Engine) newSequence() (seq Sequence, err error) {
	defer recovered(&err)
	seq, err = e.net.NewSequence()
	if err != nil {
		return nil, err
	}
	return seq, nil
}

// leave takes a request whose context ended out of the queue. One that is active already is dropped by Run.
func (e *Engine) leave(j *job) {
	e.mu.Lock()
	found := false
	for i, other := range e.waiting {
		if other == j {
			e.waiting = append(e.waiting[:i:i], e.waiting[i+1:]...)
			e.status.queued.Store(int64(len(e.waiting)))
			found = true
			break
		}
	}
	e.mu.Unlock()
	if found {
		e.finish(j, FinishCancelled, context.Cause(j.reply.ctx))
	}
}

// dropCancelled ends the active requests that nobody waits for.
func (e *Engine) dropCancelled() {
	for i := 0; i < len(e.active); {
		j := e.active[i]
		if j.reply.ctx.Err() == nil {
			i++
			continue
		}
		e.end(j, FinishCancelled, context.Cause(j.reply.ctx)) // removes it from active
	}
}

// end closes an active request's sequence, makes its place free and finishes it. Only for Run's goroutine.
func (e *Engine) end(j *job, reason FinishReason, err error) {
	if j.seq != nil {
		e.commit(j, reason, err)
		if closeErr := closeSequence(j.seq); closeErr != nil {
			e.logPanic(closeErr, j)
		}
		j.seq = nil
	}
	e.mu.Lock()
	for i, other := range e.active {
		if other == j {
			e.active = append(e.active[:i:i], e.active[i+1:]...)
			e.status.active.Store(int64(len(e.active)))
			break
		}
	}
	e.mu.Unlock()
	e.finish(j, reason, err)
}

// finish counts a request and tells its reader, once.
func (e *Engine) finish(j *job, reason FinishReason, err error) {
	text := ""
	if reason == FinishStop || reason == FinishLength {
		text = j.tail
		e.observe(e.opt.Now().Sub(j.admitted))
	}
	end := End{Reason: reason, Err: err, Usage: j.usage, Times: j.timesAt(e.opt.Now()), LimitTokens: j.limit, Windowed: j.windowed && reason == FinishLength}
	if e.opt.OnEnd != nil {
		e.opt.OnEnd(Summary{ID: j.ID, Length: len(j.Prompt), End: end, Report: j.report})
	}
	j.Entry.close(end)
	j.reply.put(Event{Text: text, End: &end})
	j.reply.cancel(errDone)
}

func closeSequence(seq Sequence) (err error) {
	defer recovered(&err)
	seq.Close()
	return nil
}

// observe moves the running mean of a request's time by a quarter.
func (e *Engine) observe(took time.Duration) {
	mean := math.Float64frombits(e.averageS.Load())
	if mean == 0 {
		mean = took.Seconds()
	}
	e.averageS.Store(math.Float64bits(mean + (took.Seconds()-mean)/4))
}

// retryAfter guesses when a place in the queue comes free, which is when the first of the running requests ends. Each is
// expected to take as long as the mean one; one that has run for s seconds, however, is not expected to end before another
// s/2: running times of requests are spread so widely (a line, or a book) that what has taken long will take long. Called
// under the lock.
func (e *Engine) retryAfter() time.Duration {
	mean, now := math.Float64frombits(e.averageS.Load()), e.opt.Now()
	first := math.Inf(1)
	for _, j := range e.active {
		ran := now.Sub(j.admitted).Seconds()
		first = min(first, max(mean-ran, ran/2))
	}
	if len(e.active) == 0 {
		first = 0 // a waiting request is about to be taken up
	}
	return time.Duration(min(max(math.Ceil(first), 1), 60)) * time.Second
}

func (e *Engine) logPanic(err error, j *job) {
	var p *PanicError
	if errors.As(err, &p) {
		e.opt.Log.Error("a bug ended a request", "request", j.ID, "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
	}
}
