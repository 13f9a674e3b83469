package serve

import (
	"context"
	"errors"
)

// Errors of [Engine.Reload].
var (
	ErrBusy      = errors.New("requests are running")
	ErrReloading = errors.New("the model is being reloaded already")
)

// reloading is a pending reload.
type reloading struct {
	ctx  context.Context
	done chan error // one slot
}

// Reload drops everything that is kept between requests, on disk too, and loads the network again. With drain it waits
// for running requests to end while new ones wait; without it a running request is ErrBusy. If ctx ends before the
// reload begins, it is cancelled. Errors: those above, ErrDraining, ErrStopped, or the network's; the next request then
// tries to load again.
func (e *Engine) Reload(ctx context.Context, drain bool) error {
	r := &reloading{ctx, make(chan error, 1)}
	e.mu.Lock()
	switch {
	case e.stopped != nil:
		e.mu.Unlock()
		return e.stopped
	case e.draining:
		e.mu.Unlock()
		return ErrDraining
	case e.reload != nil:
		e.mu.Unlock()
		return ErrReloading
	case !drain && (len(e.waiting) > 0 || len(e.active) > 0):
		e.mu.Unlock()
		return ErrBusy
	}
	e.reload = r
	e.mu.Unlock()
	e.poke()
	stop := context.AfterFunc(ctx, e.poke)
	defer stop()
	return <-r.done
}

// holdsBack reports whether waiting requests have to wait for a reload.
func (e *Engine) holdsBack() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reload != nil
}

// reloadWhenAsked runs a pending reload once no request is active. Only for Run's goroutine.
func (e *Engine) reloadWhenAsked() {
	e.mu.Lock()
	r := e.reload
	e.mu.Unlock()
	if r == nil || r.ctx.Err() == nil && len(e.active) > 0 {
		return
	}
	err := context.Cause(r.ctx)
	if err == nil {
		err = e.loadAgain()
	}
	e.mu.Lock()
	e.reload = nil
	e.mu.Unlock()
	r.done <- err
}

func (e *Engine) loadAgain() (err error) {
	defer recovered(&err)
	if e.opt.Keeper != nil {
		e.opt.Keeper.Clear()
	}
	began := e.opt.Now()
	if !e.asleep {
		e.net.Sleep()
		e.asleep = true
	}
	if err := e.net.Wake(); err != nil {
		e.opt.Log.Error("the weights cannot be loaded again", "error", err.Error())
		return err
	}
	e.asleep = false
	e.opt.Log.Info("asked to reload: the cache is dropped and the weights are loaded again", "took",
		e.opt.Now().Sub(began))
	return nil
}
