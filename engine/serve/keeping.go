package serve

import (
	"errors"

	"slipway/engine/memory/keep"
)

// A request's use of the keeper: the sequence is restored when the request starts, points are saved on the way, and
// what was processed is saved at the end. All of it runs in Run's goroutine. A panic of the keeper means that its index
// is broken for all requests: from then on the engine answers without one.

// begin restores what is known of a job's prompt.
func (e *Engine) begin(j *job) (err error) {
	if e.opt.Keeper != nil {
		err = e.guarded(j, func() {
			j.visit = e.opt.Keeper.Admit(j.Prompt, j.Marks, j.seq)
			j.done = j.seq.Len()
			j.usage.CachedTokens = j.done
			j.report = &j.visit.Report
		})
	}
	if err != nil || e.opt.Draft == nil {
		return err
	}
	if j.draftTokens = e.draftTokensOf(&j.Request); j.draftTokens == 0 {
		return nil
	}
	defer recovered(&err)
	j.draft = e.opt.Draft.Begin(j.seq, j.Prompt)
	return nil
}

// chunk is the next part of a job's input.
func (e *Engine) chunk(j *job) []int32 {
	n := min(e.net.ChunkTokens(), len(j.input)-j.done)
	if j.visit != nil {
		n = j.visit.Next(n)
	}
	return j.input[j.done : j.done+n]
}

// processed reports to the keeper that a job's tokens went through the network.
func (e *Engine) processed(j *job, tokens []int32) {
	if j.visit != nil {
		e.guarded(j, func() { j.visit.Processed(tokens) })
	}
}

// commit reports to the keeper how a job ended, before its sequence is closed.
func (e *Engine) commit(j *job, reason FinishReason, cause error) {
	if j.visit == nil {
		return
	}
	reply, ended := j.out, false
	if last := len(reply) - 1; last >= 0 && e.ends[reply[last]] {
		reply, ended = reply[:last], true
	}
	how := keep.EndWhole
	switch {
	case reason == FinishCancelled || errors.Is(cause, ErrStopped):
		how = keep.EndCancelled
	case reason == FinishError:
		how = keep.EndBroken
	case reason == FinishStop && !ended:
		how = keep.EndCut
	}
	visit := j.visit
	j.visit = nil
	e.guarded(j, func() { visit.End(how, reply) })
}

// guarded calls the keeper. After a panic the engine continues without one.
func (e *Engine) guarded(j *job, call func()) error {
	err := func() (err error) {
		defer recovered(&err)
		call()
		return nil
	}()
	if err != nil {
		e.logPanic(err, j)
		e.opt.Keeper = nil
		for _, other := range e.active {
			other.visit = nil
		}
	}
	return err
}
