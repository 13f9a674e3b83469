package hub

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// ErrStalled: no byte for the stall time-out.
var ErrStalled = errors.New("nothing more arrived")

// A stallWatch cancels a request when no byte arrives for a while.
type stallWatch struct {
	timeout time.Duration
	timer   *time.Timer
	fired   atomic.Bool
}

func newStallWatch(timeout time.Duration, cancel func()) *stallWatch {
	w := &stallWatch{timeout: timeout}
	w.timer = time.AfterFunc(timeout, func() { w.fired.Store(true); cancel() })
	return w
}

func (w *stallWatch) stop()  { w.timer.Stop() }
func (w *stallWatch) alive() { w.timer.Reset(w.timeout) }

// explain replaces the "cancelled" that a fired watch causes.
func (w *stallWatch) explain(err error) error {
	if w.fired.Load() && err != nil {
		return fmt.Errorf("%w for %s; a proxy or a firewall may block that host", ErrStalled, w.timeout)
	}
	return err
}

func (w *stallWatch) reader(r io.Reader) io.Reader { return &watched{w, r} }

type watched struct {
	watch *stallWatch
	r     io.Reader
}

func (r *watched) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.watch.alive()
	}
	return n, err
}
