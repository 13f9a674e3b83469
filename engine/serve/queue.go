package serve

import (
	"context"
	"math"
	"slices"
	"time"

	"slipway/engine/pass"
)

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

// free is how many waiting requests will start before the next pass. Called under the lock.
func (e *Engine) free() int { return max(0, e.opt.Parallel-int(e.status.active.Load())) }

// admit starts waiting requests while there is room.
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
			e.mu.Unlock() // there will be room when one of those ends
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

// newSequence opens a sequence of the network, with a panic as an error.
func (e *Engine) newSequence() (seq pass.Sequence, err error) {
	defer recovered(&err)
	seq, err = e.net.NewSequence()
	if err != nil {
		return nil, err
	}
	return seq, nil
}

// leave removes a request whose context ended from the queue. Run drops one that is active already.
func (e *Engine) leave(j *job) {
	if e.unqueue(j) {
		e.finish(j, FinishCancelled, context.Cause(j.reply.ctx))
	}
}

// unqueue removes a request from the queue and reports whether it was there.
func (e *Engine) unqueue(j *job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.Index(e.waiting, j)
	if i < 0 {
		return false
	}
	e.waiting = append(e.waiting[:i:i], e.waiting[i+1:]...)
	e.status.queued.Store(int64(len(e.waiting)))
	return true
}

// observe moves the running mean of a request's time by a quarter.
func (e *Engine) observe(took time.Duration) {
	mean := math.Float64frombits(e.averageS.Load())
	if mean == 0 {
		mean = took.Seconds()
	}
	e.averageS.Store(math.Float64bits(mean + (took.Seconds()-mean)/4))
}

// retryAfter estimates when the first running request ends, which frees a place in the queue. Each is expected to take
// the mean time; but one that has run for s seconds is not expected to end before another s/2, as times vary so much (a
// line, or a book) that what has taken long will take longer. Called under the lock.
func (e *Engine) retryAfter() time.Duration {
	mean, now := math.Float64frombits(e.averageS.Load()), e.opt.Now()
	first := math.Inf(1)
	for _, j := range e.active {
		ran := now.Sub(j.admitted).Seconds()
		first = min(first, max(mean-ran, ran/2))
	}
	if len(e.active) == 0 {
		first = 0 // a waiting request is about to start
	}
	return time.Duration(min(max(math.Ceil(first), 1), 60)) * time.Second
}
