package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"slipway/engine/pass"
)

// panicsToGiveUp in a row mean that the network itself is broken, not a request. Two can be one bad request and its
// retry.
const panicsToGiveUp = 3

// decodeStep advances every reply that is past its prompt. Its error ends the engine.
func (e *Engine) decodeStep(ctx context.Context) error {
	jobs := e.jobs[:0]
	for _, j := range e.active {
		if !j.prefilling() {
			jobs = append(jobs, j)
		}
	}
	e.jobs = jobs
	if len(jobs) == 0 {
		return nil
	}
	steps, err := e.decode(ctx, jobs)
	if err != nil {
		return e.failed(ctx, jobs, err)
	}
	e.panics = 0
	for i, j := range jobs {
		e.accept(j, steps[i])
	}
	return nil
}

// decode is the decoder's, with a panic as an error.
func (e *Engine) decode(ctx context.Context, jobs []*job) (steps []step, err error) {
	defer recovered(&err)
	steps, err = e.decoder.decode(ctx, jobs)
	if err == nil && len(steps) != len(jobs) {
		panic("the decoder gave another number of steps than jobs")
	}
	return steps, err
}

// prefillChunk processes one chunk of the prompt that waited longest for one. With its last chunk comes the first
// token. Its error ends the engine.
func (e *Engine) prefillChunk(ctx context.Context) error {
	var j *job
	for _, other := range e.active {
		if other.prefilling() && (j == nil || other.lastTurn < j.lastTurn) {
			j = other
		}
	}
	if j == nil {
		return nil
	}
	e.turn++
	j.lastTurn = e.turn
	chunk := e.chunk(j)
	wanted, top := pass.LogitsNone, 0
	if j.done+len(chunk) == len(j.input) {
		wanted, top = pass.LogitsLast, j.topWanted()
	}
	whileWanted, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(j.reply.ctx, cancel)()
	segment := pass.Segment{Seq: j.seq, Tokens: chunk, Logits: wanted, Top: top}
	rows, err := e.prefillPass(whileWanted, j, segment)
	if err != nil {
		return e.failed(whileWanted, []*job{j}, err)
	}
	e.panics = 0
	j.done += len(chunk)
	e.processed(j, chunk)
	j.usage.ComputedTokens = min(j.done, len(j.Prompt)) - j.usage.CachedTokens
	j.Entry.note(j, PhasePrefill)
	if !j.prefilling() {
		e.beginReply(j, rows[0])
	}
	return nil
}

// prefillPass runs a chunk of a prompt, and has its draft follow. The rows of logits are copies where it has one.
func (e *Engine) prefillPass(ctx context.Context, j *job, segment pass.Segment) (logits [][]float32, err error) {
	defer recovered(&err)
	if j.draft != nil {
		j.draft.Want(&segment)
	}
	rows, err := e.forward(ctx, []pass.Segment{segment})
	if err != nil || j.draft == nil {
		if err == nil {
			logits = rows[0]
		}
		return logits, err
	}
	for _, row := range rows[0] {
		logits = append(logits, slices.Clone(row)) // the draft's pass takes their place
	}
	return logits, j.draft.Kept(ctx, segment.Tokens)
}

// beginReply delivers what the request forces and chooses the first token after it, from the last row of its prompt.
func (e *Engine) beginReply(j *job, logits []float32) {
	j.first = e.opt.Now()
	for _, id := range j.Opening {
		j.count(id)
		if e.deliver(j, Token{ID: id, Forced: true}) {
			return
		}
	}
	token, err := e.choose(j, j.out, logits, 0, 0)
	if err != nil {
		e.logPanic(err, j)
		e.end(j, FinishError, err)
		return
	}
	e.deliver(j, token)
}

// failed ends the requests of a pass that failed. Its error is not nil only when the engine should end as well.
func (e *Engine) failed(ctx context.Context, jobs []*job, err error) (fatal error) {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if j := jobs[0]; len(jobs) == 1 && j.reply.ctx.Err() != nil {
			e.end(j, FinishCancelled, context.Cause(j.reply.ctx))
			return nil
		}
		err = ErrStopped
	}
	var panicked *PanicError
	if errors.As(err, &panicked) {
		e.panics++
	}
	for _, j := range jobs {
		e.logPanic(err, j)
		e.end(j, FinishError, err)
	}
	if e.panics >= panicsToGiveUp {
		return fmt.Errorf("%d passes in a row failed: %w", e.panics, err)
	}
	return nil
}

// forward is a pass of the network, with a panic as an error.
func (e *Engine) forward(ctx context.Context, segments []pass.Segment) (rows [][][]float32, err error) {
	defer recovered(&err)
	rows, err = e.net.Forward(ctx, segments)
	if err != nil {
		return nil, err
	}
	for i, s := range segments {
		if len(rows) != len(segments) || len(rows[i]) != s.Rows() {
			panic("the network gave another number of rows than asked for")
		}
	}
	return rows, nil
}
