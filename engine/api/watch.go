package api

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"slipway/engine/memory"
	"slipway/engine/serve"
)

// watch answers GET /slipway/requests.
func (s *Server) watch(w http.ResponseWriter, _ *http.Request) {
	now, _ := s.watching(0)
	sendJSON(w, http.StatusOK, now)
}

// watching describes the server, with the requests that changed after the ledger's count since.
func (s *Server) watching(since uint64) (*watching, uint64) {
	status := s.opt.Engine.Status()
	records, count := s.opt.Engine.Ledger().Records(since)
	now := &watching{
		SchemaVersion: 1, At: s.opt.Now(), Cache: s.watchedCache(), Requests: []*watchedRequest{},
		Server: watchedServer{
			Model: s.opt.ModelID, Revision: s.opt.Revision, Profile: s.opt.Profile, Device: s.opt.Device, Numerics: s.opt.Numerics, WindowTokens: s.opt.Engine.WindowTokens(),
			PrefillPolicy: s.opt.PrefillPolicy, KVFormat: s.opt.KVFormat,
			Ready: status.Running && !status.Draining, Active: status.Active, Queued: status.Queued, Draining: status.Draining,
		},
	}
	for _, r := range slices.Backward(records) {
		w := watchedOf(r, s.opt.ShowSnippets)
		w.PrefillPolicy = s.opt.PrefillPolicy
		now.Requests = append(now.Requests, w)
	}
	return now, count
}

func (s *Server) watchedCache() *watchedCache {
	k := s.opt.Keeper
	if k == nil {
		return nil
	}
	tier := func(t memory.Tier) *watchedTier {
		budget := k.Budget(t)
		if budget.TotalBytes == 0 {
			return nil
		}
		u := k.Usage(t)
		return &watchedTier{u.Points, u.TotalBytes, budget.TotalBytes}
	}
	c := k.Counters()
	return &watchedCache{
		Memory: *tier(memory.InMemory), Disk: tier(memory.OnDisk), FromMemory: c.Hits - c.FromDisk, FromDisk: c.FromDisk, FromNothing: c.Misses,
		Saved: c.Saved, Evicted: c.Evicted, Damaged: c.Damaged, WrittenBytes: c.WrittenBytes,
	}
}

const (
	watchEvery   = 250 * time.Millisecond // a bar that moves more often is not easier to read
	mostWatchers = 16                     // event streams at once
)

// events answers GET /slipway/events until the client leaves or the server stops.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if s.watchers.Add(1) > mostWatchers {
		s.watchers.Add(-1)
		w.(*record).refuse(&Error{Status: http.StatusServiceUnavailable, Message: "as many programs watch this server as may; close a monitor page",
			Type: "server_error", Code: "too_many_watchers", RetryAfter: 5 * time.Second})
		return
	}
	defer s.watchers.Add(-1)
	out := openStream(w)
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	send := func(write func() error) bool {
		control.SetWriteDeadline(time.Now().Add(sendPatience))
		return write() == nil
	}
	now, count := s.watching(0)
	if !send(func() error { return out.event("snapshot", now) }) {
		return
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	server, sent := now.Server, time.Now()
	for now.Server.Ready || now.Server.Active > 0 || now.Server.Queued > 0 {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		since := count
		now, count = s.watching(since)
		var write func() error
		switch {
		case count != since || now.Server != server:
			write = func() error { return out.event("change", now) }
		case time.Since(sent) >= s.opt.KeepAlive:
			write = out.comment
		default:
			continue
		}
		if !send(write) {
			return
		}
		server, sent = now.Server, time.Now()
	}
}

// requestOf gives the id in /slipway/requests/{id}/cancel.
func requestOf(path string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/slipway/requests/")
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(rest, "/cancel")
	return id, ok && id != "" && !strings.Contains(id, "/")
}

// cancel answers POST /slipway/requests/{id}/cancel.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request, _ *record) *Error {
	if _, failure := controlBody(w, r); failure != nil {
		return failure
	}
	id, _ := requestOf(r.URL.Path)
	if !s.opt.Engine.Ledger().Cancel(id) {
		return &Error{Status: http.StatusNotFound, Message: "no such request is under way; GET /slipway/requests lists them", Type: "invalid_request_error", Code: "not_running"}
	}
	sendJSON(w, http.StatusOK, cancelled{id, true})
	return nil
}

// reload answers POST /slipway/reload, which takes as long as loading the weights does.
func (s *Server) reload(w http.ResponseWriter, r *http.Request, _ *record) *Error {
	drain, failure := controlBody(w, r)
	if failure != nil {
		return failure
	}
	began := s.opt.Now()
	err := s.opt.Engine.Reload(r.Context(), drain)
	switch {
	case errors.Is(err, serve.ErrBusy):
		return &Error{Status: http.StatusConflict, Message: `requests are running; wait for them, cancel them, or send {"drain": true} to let them end first`,
			Type: "invalid_request_error", Code: "busy"}
	case errors.Is(err, serve.ErrReloading):
		return &Error{Status: http.StatusConflict, Message: "the model is being reloaded already", Type: "invalid_request_error", Code: "reloading"}
	case err != nil && r.Context().Err() != nil:
		return &Error{Status: statusClientClosed, Message: "the client left before the reload began, so it was taken back", Type: "invalid_request_error", Code: "cancelled"}
	case err != nil:
		return asError(err)
	}
	sendJSON(w, http.StatusOK, reloaded{true, millis(s.opt.Now().Sub(began))})
	return nil
}

// mostControl bounds the body of a control request.
const mostControl = 4 << 10

// controlBody reads an empty body or {"drain": …}.
func controlBody(w http.ResponseWriter, r *http.Request) (drain bool, failure *Error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostControl))
	if err != nil {
		return false, invalid("", "the body did not arrive whole, or has more than %d bytes", mostControl)
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		return false, nil
	}
	o, failure := readBody(raw)
	if failure != nil {
		return false, failure
	}
	if _, cancels := requestOf(r.URL.Path); !cancels {
		drain, _ = o.boolean("drain")
	}
	return drain, o.done()
}
