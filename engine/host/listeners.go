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

// Listeners are the HTTP servers of the API and of the monitor. Their handlers are replaced once the model is loaded.
type Listeners struct {
	servers       []*http.Server
	api, watching atomic.Pointer[http.Handler]
}

// NewListeners starts to answer. Without a second listener there is no monitor.
func NewListeners(loading *api.Server, listener, watched net.Listener, log *slog.Logger) *Listeners {
	l := &Listeners{}
	l.Serve(loading)
	for _, at := range []struct {
		listener net.Listener
		handler  *atomic.Pointer[http.Handler]
	}{{listener, &l.api}, {watched, &l.watching}} {
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
		l.servers = append(l.servers, server)
		go server.Serve(at.listener)
	}
	return l
}

// Serve answers from s from now on.
func (l *Listeners) Serve(s *api.Server) {
	answers, watches := s.Handler(), s.Monitor(monitor.Page())
	l.api.Store(&answers)
	l.watching.Store(&watches)
}

// Close waits for responses within patience, then closes the rest.
func (l *Listeners) Close(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, server := range l.servers {
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
}

// Cut closes every connection at once.
func (l *Listeners) Cut() {
	for _, server := range l.servers {
		server.Close()
	}
}
