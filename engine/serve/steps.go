package serve

import (
	"context"
	"errors"
	"fmt"

	"slipway/engine/pass"
	"slipway/engine/sample"
)

// panicsToGiveUp in a row mean that the network itself is broken, not a request. Two can be one bad request and its retry.
const panicsToGiveUp = 3

// decodeStep advances every reply under way by one token, all in one pass.
func (e *Engine) decodeStep(ctx context.Context) error {
	jobs, segments := e.jobs[:0], e.segments[:0]
	for _, j := range e.active {
		if !j.prefilling() {
			jobs = append(jobs, j)
			segments = append(segments, pass.Segment{Seq: j.seq, Tokens: j.out[len(j.out)-1:], Logits: pass.LogitsLast, Top: j.topWanted()})
		}
	}
	e.jobs, e.segments = jobs, segments
	if len(jobs) == 0 {
		return nil
	}
	rows, err := e.pass(ctx, jobs, segments)
	if rows == nil {
		return err
	}
	for i, j := range jobs {
		e.processed(j, segments[i].Tokens)
		e.next(j, rows[i][0], i)
	}
	return nil
}

// prefillChunk processes one chunk of the prompt that waited longest for one. With its last chunk comes the first token.
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
	rows, err := e.pass(whileWanted, []*job{j}, []pass.Segment{{Seq: j.seq, Tokens: chunk, Logits: wanted, Top: top}})
	if rows == nil {
		return err
	}
	j.done += len(chunk)
	e.processed(j, chunk)
	j.usage.ComputedTokens = min(j.done, len(j.Prompt)) - j.usage.CachedTokens
	j.Entry.note(j, PhasePrefill)
	if j.prefilling() {
		return nil
	}
	j.first = e.opt.Now()
	for _, id := range j.Opening {
		if e.deliver(j, Token{ID: id, Forced: true}) {
			return nil
		}
	}
	e.next(j, rows[0][0], 0)
	return nil
}

// pass runs the network. Where it fails, its requests have been ended and rows is nil; the error is not nil only when the
// engine should end as well.
func (e *Engine) pass(ctx context.Context, jobs []*job, segments []pass.Segment) (rows [][][]float32, fatal error) {
	rows, err := e.forward(ctx, segments)
	if err == nil {
		e.panics = 0
		return rows, nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if j := jobs[0]; len(jobs) == 1 && j.reply.ctx.Err() != nil {
			e.end(j, FinishCancelled, context.Cause(j.reply.ctx))
			return nil, nil
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
		return nil, fmt.Errorf("%d passes in a row failed: %w", e.panics, err)
	}
	return nil, nil
}

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

// next chooses a reply's next token from logits [V] of the pass's segment and delivers it. A panic on the way ends this request alone.
func (e *Engine) next(j *job, logits []float32, segment int) {
	token, err := e.choose(j, logits, segment)
	if err != nil {
		e.logPanic(err, j)
		e.end(j, FinishError, err)
		return
	}
	e.deliver(j, token)
}

func (e *Engine) choose(j *job, logits []float32, segment int) (token Token, err error) {
	defer recovered(&err)
	d, chosen := sample.Distribution{}, false
	if j.topWanted() > 0 {
		d, chosen = e.sampler.DistributionOfTop(e.net.Best(segment, 0), j.Sampling)
	}
	if !chosen {
		var mask sample.Mask
		if j.Mask != nil {
			mask = j.Mask(j.out)
		}
		if d, err = e.sampler.Distribution(logits, j.Sampling, j.history, mask); err != nil {
			return Token{}, err
		}
	}
	token.ID = d.IDs[0]
	if len(d.IDs) > 1 {
		token.ID = d.Pick(j.generator.Float64())
	}
	if j.TopLogprobs >= 0 {
		token.Logprob, token.Top = e.sampler.Logprobs(logits, token.ID, j.TopLogprobs)
	}
	return token, nil
}

// deliver adds a token to the reply and ends it where it ends; it reports whether it did.
func (e *Engine) deliver(j *job, token Token) (ended bool) {
	j.out = append(j.out, token.ID)
	j.usage.CompletionTokens++
	if j.history != nil {
		j.history.Add(token.ID)
	}

	reason, text, err := e.read(j, token.ID)
	if err != nil {
		e.logPanic(err, j)
		e.end(j, FinishError, err)
		return true
	}
	if reason == "" {
		j.Entry.note(j, PhaseDecode)
		j.reply.put(Event{Token: &token, Text: text})
		return false
	}
	if !e.ends[token.ID] {
		j.reply.put(Event{Token: &token, Text: text})
		text = ""
	}
	j.tail = text + j.tail
	e.end(j, reason, nil)
	return true
}

// read gives the text that became certain with a token, and why the reply ends with it, if it does. What comes out only
// because of the end is left in j.tail.
func (e *Engine) read(j *job, id int32) (reason FinishReason, text string, err error) {
	defer recovered(&err)
	hit := false
	if e.ends[id] {
		reason = FinishStop
	} else {
		text, hit = j.stops.Push(j.Text.Push(id))
		if hit || j.over(text, false) {
			return FinishStop, text, nil
		}
		if len(j.out) >= j.limit {
			reason = FinishLength
		}
	}
	if reason != "" {
		rest, hit := j.stops.Push(j.Text.Flush())
		if hit {
			j.tail = rest
			return FinishStop, text, nil
		}
		j.tail = rest + j.stops.Flush()
		if j.over(j.tail, true) {
			reason = FinishStop
		}
	}
	return reason, text, nil
}
