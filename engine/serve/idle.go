package serve

import "time"

// idle waits for work, or for the end of Run, which it reports. After IdleAfter without work the network sleeps.
func (e *Engine) idle(done <-chan struct{}) (ended bool) {
	var bored <-chan time.Time
	if e.opt.IdleAfter > 0 && !e.asleep {
		timer := time.NewTimer(e.opt.IdleAfter)
		defer timer.Stop()
		bored = timer.C
	}
	select {
	case <-done:
		return true
	case <-e.wake:
	case <-bored:
		e.sleep()
	}
	return false
}

// sleep unloads the network and the points in memory; points on disk stay. It does nothing while a point is being
// written.
func (e *Engine) sleep() {
	if e.opt.Keeper != nil && !e.opt.Keeper.Unload() {
		return
	}
	e.net.Sleep()
	e.asleep = true
	e.opt.Log.Info("idle: the weights' memory is given back until the next request")
}

// wakeUp loads the network again for a waiting request. If that fails, the request gets the error and the next one
// tries again.
func (e *Engine) wakeUp() {
	for e.asleep {
		e.mu.Lock()
		if len(e.waiting) == 0 {
			e.mu.Unlock()
			return
		}
		first := e.waiting[0]
		e.mu.Unlock()
		began := e.opt.Now()
		err := func() (err error) {
			defer recovered(&err)
			return e.net.Wake()
		}()
		if err == nil {
			e.asleep = false
			e.opt.Log.Info("the weights are loaded again", "took", e.opt.Now().Sub(began))
			return
		}
		e.opt.Log.Error("the weights cannot be loaded again", "error", err.Error())
		e.refuse(first, err)
	}
}

// refuse ends a request if it still waits.
func (e *Engine) refuse(j *job, err error) {
	if e.unqueue(j) {
		j.unwatch()
		e.finish(j, FinishError, err)
	}
}
