package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// pool is the threads of a device. All of them run a pass together, operation by operation, taking
// tasks by an atomic counter, so that a thread that the system suspends delays only its current task.
//
// Between passes a thread spins for idleSpin and then parks: during decode it is awake, in an idle server it costs
// nothing.
type pool struct {
	background int        // threads besides the caller's
	turn       sync.Mutex // held by the pass that runs: several networks may share a device

	current    atomic.Pointer[pass]
	generation atomic.Uint32 // counts passes
	active     atomic.Int32  // threads that may be looking at current
	parked     atomic.Int32
	closed     atomic.Bool
	wake       chan struct{}
	ended      sync.WaitGroup
}

// idleSpin covers sampling and the server's work between two decode steps of a small model (tens of microseconds).
const idleSpin = 150 * time.Microsecond

// A thread that waits for another's last task spins for about 1 µs, then yields to other goroutines between checks, and
// after about 150 µs, when the other has most likely lost its processor to another program, sleeps so that it can have
// ours.
const (
	spinsBeforeYield = 1000
	spinsBeforeSleep = 2000
	waitSleep        = 20 * time.Microsecond
)

// pause is one step of waiting, the spins-th.
func pause(spins int) {
	switch {
	case spins < spinsBeforeYield:
	case spins < spinsBeforeSleep:
		runtime.Gosched()
	default:
		time.Sleep(waitSleep)
	}
}

func newPool(background int) *pool {
	p := &pool{background: background, wake: make(chan struct{}, background)}
	p.ended.Add(background)
	for i := range background {
		go p.thread(i + 1)
	}
	return p
}

func (p *pool) close() {
	if p.closed.Swap(true) {
		return
	}
	p.generation.Add(1)
	close(p.wake)
	p.ended.Wait()
}

// run executes the pass on all threads and returns when every operation is done and no thread looks at it any more.
func (p *pool) run(q *pass) {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.current.Store(q)
	p.generation.Add(1)
	for n := p.parked.Load(); n > 0; n-- {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	q.work(0)
	p.current.Store(nil)
	for spins := 0; p.active.Load() != 0; spins++ {
		pause(spins)
	}
}

func (p *pool) thread(id int) {
	defer p.ended.Done()
	var seen uint32
	for {
		seen = p.await(seen)
		if p.closed.Load() {
			return
		}
		// Announce first, look second: either run's wait sees us or we see that the pass is over.
		p.active.Add(1)
		if q := p.current.Load(); q != nil {
			q.work(id)
		}
		p.active.Add(-1)
	}
}

// await returns the generation once it differs from seen.
func (p *pool) await(seen uint32) uint32 {
	for {
		start := time.Now()
		for time.Since(start) < idleSpin {
			for range 100 {
				if g := p.generation.Load(); g != seen {
					return g
				}
			}
			runtime.Gosched()
		}
		p.parked.Add(1)
		if p.generation.Load() == seen { // else run may have looked before we said that we park
			<-p.wake
		}
		p.parked.Add(-1)
	}
}
