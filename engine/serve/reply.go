package serve

import (
	"context"
	"errors"
	"sync"
)

// errDone is the cause of a reply's context after the reply ended.
var errDone = errors.New("the reply has ended")

// Reply is the reading side of a request. Its events wait in memory, at most one for each token of the window, so that
// the engine never waits for a reader.
type Reply struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	ready  chan struct{} // one slot: filled while events wait

	mu     sync.Mutex
	events []Event
}

func newReply(ctx context.Context) *Reply {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Reply{ctx: ctx, cancel: cancel, ready: make(chan struct{}, 1)}
}

// Ready gives a value once there are events that the last Take did not give.
func (r *Reply) Ready() <-chan struct{} { return r.ready }

// Take gives the events since the last call, in order, possibly none. The last event of a reply has an End.
func (r *Reply) Take() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

// Cancel ends the request as if its context had ended with this cause. The end event still comes.
func (r *Reply) Cancel(cause error) { r.cancel(cause) }

func (r *Reply) put(e Event) {
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
	select {
	case r.ready <- struct{}{}:
	default:
	}
}
