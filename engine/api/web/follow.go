package web

import (
	"context"
	"net/http"
	"time"

	"slipway/engine/api/turn"
)

// SendPatience is how long a client may take to accept one write. A laptop that slept is gone by then; its reply is
// cancelled.
const SendPatience = 2 * time.Minute

// Follow hands a reply's events to each as they come, and calls idle whenever none came for keepAlive: while the
// prompt is read, and while the reply is in what may be a call, which is held until it is certain. The first error
// ends it and cancels the reply. It returns the reply's end.
func Follow(w http.ResponseWriter, reply *turn.Reply, keepAlive time.Duration,
	each func(turn.Event) error, idle func() error) (*turn.End, error) {
	control := http.NewResponseController(w)
	timer := time.NewTimer(keepAlive)
	defer timer.Stop()
	allowTime := func() { control.SetWriteDeadline(time.Now().Add(SendPatience)) }
	for {
		select {
		case <-reply.Ready():
			allowTime()
			events := reply.Take()
			for _, e := range events {
				if e.Kind == turn.Ended {
					return e.End, nil
				}
				if err := each(e); err != nil {
					reply.Cancel(context.Canceled)
					return nil, err
				}
			}
			if len(events) == 0 {
				continue
			}
		case <-timer.C:
			allowTime()
			if err := idle(); err != nil {
				reply.Cancel(context.Canceled)
				return nil, err
			}
		}
		timer.Reset(keepAlive)
	}
}
