package host

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"slipway/engine/api"
	"slipway/engine/monitor"
)

// Door is the HTTP servers of the API and of the monitor. Their handlers are replaced once the model is loaded.
type Door struct {
	servers       []*http.Server
	api, watching atomic.Pointer[http.Handler]
}

// NewDoor starts to answer. Without a second listener there is no monitor.
func NewDoor(loading *api.Server, listener, watched net.Listener, log *slog.Logger) *Door {
	d := &Door{}
	d.Open(loading)
	for _, at := range []struct {
		listener net.Listener
		handler  *atomic.Pointer[http.Handler]
	}{{listener, &d.api}, {watched, &d.watching}} {
		if at.listener == nil {
			continue
		}
		server := &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				(*at.handler.Load()).ServeHTTP(w, r)
			}),
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		}
		d.servers = append(d.servers, server)
		go server.Serve(at.listener)
	}
	return d
}

// Open answers from s from now on.
func (d *Door) Open(s *api.Server) {
	answers, watches := s.Handler(), s.Monitor(monitor.Page())
	d.api.Store(&answers)
	d.watching.Store(&watches)
}

// Close waits for responses within patience, then closes the rest.
func (d *Door) Close(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, server := range d.servers {
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
}

// Cut closes every connection at once.
func (d *Door) Cut() {
	for _, server := range d.servers {
		server.Close()
	}
}
