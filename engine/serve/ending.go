package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"slipway/engine/pass"
)

// stop ends all requests after Run.
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

// dropCancelled ends the active requests whose clients left.
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

// end closes an active request's sequence, frees its place and finishes it. Only for Run's goroutine.
func (e *Engine) end(j *job, reason FinishReason, err error) {
	if j.seq != nil {
		e.commit(j, reason, err)
		j.endDraft() // after the states that carry what it knows
		if closeErr := closeSequence(j.seq); closeErr != nil {
			e.logPanic(closeErr, j)
		}
		j.seq = nil
	}
	e.mu.Lock()
	if i := slices.Index(e.active, j); i >= 0 {
		e.active = append(e.active[:i:i], e.active[i+1:]...)
		e.status.active.Store(int64(len(e.active)))
	}
	e.mu.Unlock()
	e.finish(j, reason, err)
}

// finish counts a request and sends its end to the reader, once.
func (e *Engine) finish(j *job, reason FinishReason, err error) {
	text := ""
	if reason == FinishStop || reason == FinishLength {
		text = j.tail
		e.observe(e.opt.Now().Sub(j.admitted))
	}
	end := End{Reason: reason, Err: err, Usage: j.usage, Times: j.timesAt(e.opt.Now()), LimitTokens: j.limit,
		Windowed: j.windowed && reason == FinishLength}
	if e.opt.OnEnd != nil {
		e.opt.OnEnd(Summary{ID: j.ID, Length: len(j.Prompt), End: end, Report: j.report})
	}
	j.Entry.close(end)
	j.reply.put(Event{Text: text, End: &end})
	j.reply.cancel(errDone)
}

func closeSequence(seq pass.Sequence) (err error) {
	defer recovered(&err)
	seq.Close()
	return nil
}

func (e *Engine) logPanic(err error, j *job) {
	var p *PanicError
	if errors.As(err, &p) {
		e.opt.Log.Error("a bug ended a request", "request", j.ID, "panic", fmt.Sprint(p.Value), "stack",
			string(p.Stack))
	}
}
