package serve

import (
	"context"
	"runtime/debug"
	"time"

	"slipway/engine/draft"
	"slipway/engine/draft/accept"
	"slipway/engine/memory/keep"
	"slipway/engine/pass"
	"slipway/engine/sample"
)

// job is a request in the engine. After Submit only Run's goroutine touches it.
type job struct {
	Request
	reply   *Reply
	unwatch func() bool // stops watching the context for the queue

	input    []int32 // prompt, then opening
	done     int     // tokens of input processed
	limit    int     // tokens of the reply, at least 1
	windowed bool

	seq    pass.Sequence
	visit  *keep.Visit  // nil: nothing is kept of it
	report *keep.Report // of the prompt; nil: nothing is kept

	draft       draft.Context // nil: its tokens are not drafted
	draftTokens int           // proposed at a time
	guarded     guarded
	drafted     []accept.Drafted // proposed in the running decode step
	rows        []int32          // tokens of its segment in it: the last of the reply, then those

	out       []int32         // tokens of the reply
	history   *sample.History // nil: no penalty needs it
	generator *sample.Generator
	stops     StopFinder
	tail      string // text that is sent with the end

	usage                      Usage
	submitted, admitted, first time.Time
	lastTurn                   uint64 // when it had its last prefill chunk
}

func newJob(ctx context.Context, req Request, room int, now time.Time) *job {
	j := &job{Request: req, reply: newReply(ctx), submitted: now, limit: req.MaxTokens, generator: sample.NewGenerator(
		req.Seed)}
	if j.limit == 0 || j.limit > room {
		j.limit, j.windowed = room, true
	}
	j.input = append(append(make([]int32, 0, len(req.Prompt)+len(req.Opening)), req.Prompt...), req.Opening...)
	j.stops.Stops = req.Stop
	if req.Sampling.UsesHistory() {
		j.history = sample.NewHistory(req.Prompt)
	}
	return j
}

// endDraft ends drafting for the request.
func (j *job) endDraft() {
	if j.draft != nil {
		j.draft.End()
		j.draft = nil
	}
}

// over reports whether the request's Watch ends the reply; a request without one never does.
func (j *job) over(text string, reason FinishReason) bool {
	return j.Watch != nil && j.Watch(text, reason)
}

// count counts a token of the reply for penalties.
func (j *job) count(id int32) {
	if j.history != nil {
		j.history.Add(id)
	}
}

// uncount takes a token back that was counted.
func (j *job) uncount(id int32) {
	if j.history != nil {
		j.history.Remove(id)
	}
}

// rewind takes the last tokens back that the sequence processed.
func (j *job) rewind(tokens int) (err error) {
	defer recovered(&err)
	if j.visit != nil {
		j.visit.Rewind(tokens)
	} else {
		j.seq.Rewind(tokens)
	}
	return nil
}

// topWanted is how many of the largest logits decide its next token; 0 where all do, as with a mask or with logprobs.
func (j *job) topWanted() int {
	if j.Mask != nil || j.TopLogprobs >= 0 {
		return 0
	}
	return j.Sampling.TopWanted()
}

// prefilling reports whether part of the input is still to be processed.
func (j *job) prefilling() bool { return j.done < len(j.input) }

func (j *job) timesAt(now time.Time) Times {
	return timesAt(j.Tokenize, j.submitted, j.admitted, j.first, now)
}

// timesAt splits a request's time so far; moments that are not reached are zero.
func timesAt(tokenize time.Duration, submitted, admitted, first, now time.Time) Times {
	t := Times{Tokenize: tokenize}
	switch {
	case submitted.IsZero():
	case admitted.IsZero():
		t.Queue = now.Sub(submitted)
	case first.IsZero():
		t.Queue, t.Prefill = admitted.Sub(submitted), now.Sub(admitted)
	default:
		t.Queue, t.Prefill, t.Decode = admitted.Sub(submitted), first.Sub(admitted), now.Sub(first)
	}
	return t
}

// recovered turns a panic into *err, for a deferred call.
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{value, debug.Stack()}
	}
}
