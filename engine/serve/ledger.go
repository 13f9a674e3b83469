package serve

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"slipway/engine/memory/keep"
)

// ErrCancelled is the cause of a reply that was cancelled through [Ledger.Cancel].
var ErrCancelled = errors.New("the request was cancelled on the server")

// Phase is how far a request is.
type Phase string

const (
	PhaseTokenize  Phase = "tokenize" // its text is read and tokenised
	PhaseQueue     Phase = "queue"
	PhasePrefill   Phase = "prefill"
	PhaseDecode    Phase = "decode"
	PhaseDone      Phase = "done"
	PhaseCancelled Phase = "cancelled"
	PhaseFailed    Phase = "failed"
)

// Ended reports whether the request has ended.
func (p Phase) Ended() bool { return p == PhaseDone || p == PhaseCancelled || p == PhaseFailed }

// Record is what is known of a request at one moment.
type Record struct {
	ID      string
	Phase   Phase
	Started time.Time
	Length  int   // tokens of the whole prompt; 0 until it is tokenised
	Forced  int   // tokens of the reply that were not computed: the request's Opening
	Usage   Usage // so far
	Times   Times // so far
	Limit   int   // the most tokens of the reply; 0 until it is known
	Reason  FinishReason
	Report  *keep.Report // what was known of the prompt; nil until prefill and without a cache. Not to be changed
	Change  uint64       // the ledger's count of changes at this record's latest one
}

// mostEnded is how many ended requests are remembered.
const mostEnded = 64

// Ledger records running requests and the latest ended ones, for monitoring; the engine decides nothing by it. Safe
// from any goroutine.
type Ledger struct {
	now func() time.Time

	mu      sync.Mutex
	changes uint64
	entries []*Entry // by start, oldest first
	history history
}

// Entry is a request's place in the ledger.
type Entry struct {
	ledger *Ledger
	cancel context.CancelCauseFunc

	// Under the ledger's lock:
	record                     Record
	submitted, admitted, first time.Time
}

// Open adds a request whose text is being read, with a context that [Ledger.Cancel] ends. The entry must be passed to
// [Engine.Submit], or dropped.
func (l *Ledger) Open(ctx context.Context, id string) (*Entry, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	e := &Entry{ledger: l, cancel: cancel, record: Record{ID: id, Phase: PhaseTokenize, Started: l.now()}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	l.touch(e)
	return e, ctx
}

// Drop removes an entry that was not submitted, and ends its context.
func (e *Entry) Drop() {
	e.ledger.mu.Lock()
	defer e.ledger.mu.Unlock()
	if e.record.Phase == PhaseTokenize {
		e.ledger.remove(e)
		e.cancel(errDone)
	}
}

func (l *Ledger) remove(e *Entry) {
	if at := slices.Index(l.entries, e); at >= 0 {
		l.entries = slices.Delete(l.entries, at, at+1)
		l.changes++
	}
}

func (l *Ledger) touch(e *Entry) {
	l.changes++
	e.record.Change = l.changes
}

// note records a job's state.
func (e *Entry) note(j *job, phase Phase) {
	l := e.ledger
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &e.record
	l.history.count(now, r.Usage, j.usage)
	r.Phase, r.Length, r.Forced, r.Usage, r.Limit, r.Report = phase, len(j.Prompt), len(j.Opening), j.usage, j.limit,
		j.report
	r.Times.Tokenize = j.Tokenize
	e.submitted, e.admitted, e.first = j.submitted, j.admitted, j.first
	l.touch(e)
}

// close records how a job ended, and drops the oldest ended ones.
func (e *Entry) close(end End) {
	l := e.ledger
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	phases := map[FinishReason]Phase{FinishStop: PhaseDone, FinishLength: PhaseDone, FinishCancelled: PhaseCancelled,
		FinishError: PhaseFailed}
	r := &e.record
	l.history.count(now, r.Usage, end.Usage)
	l.history.at(now).Ended++
	r.Phase, r.Usage, r.Times, r.Reason = phases[end.Reason], end.Usage, end.Times, end.Reason
	l.touch(e)
	e.cancel(errDone)
	ended := 0
	for _, other := range slices.Backward(l.entries) {
		if other.record.Phase.Ended() {
			if ended++; ended > mostEnded {
				l.remove(other)
			}
		}
	}
}

// Records gives the requests that changed after the count since (0: all), oldest first, and the count now.
func (l *Ledger) Records(since uint64) ([]Record, uint64) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Record
	for _, e := range l.entries {
		if e.record.Change > since {
			out = append(out, e.at(now))
		}
	}
	return out, l.changes
}

// at is the entry's record, with the times so far of a running request.
func (e *Entry) at(now time.Time) Record {
	r := e.record
	if !r.Phase.Ended() {
		tokenize := r.Times.Tokenize
		if r.Phase == PhaseTokenize {
			tokenize = now.Sub(r.Started)
		}
		r.Times = timesAt(tokenize, e.submitted, e.admitted, e.first, now)
	}
	return r
}

// Cancel ends a running request as if its client had left. It reports whether there is one.
func (l *Ledger) Cancel(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.record.ID == id && !e.record.Phase.Ended() {
			e.cancel(ErrCancelled)
			return true
		}
	}
	return false
}
