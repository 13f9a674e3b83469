package api

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/memory"
	"slipway/engine/serve"
	"slipway/wire"
)

// watch answers GET /slipway/requests.
func (s *Server) watch(w http.ResponseWriter, _ *http.Request) {
	now, _ := s.watching(0)
	web.SendJSON(w, http.StatusOK, now)
}

// watching describes the server, with the requests that changed after the ledger's count since.
func (s *Server) watching(since uint64) (*wire.Watching, uint64) {
	status := s.opt.Engine.Status()
	records, count := s.opt.Engine.Ledger().Records(since)
	now := &wire.Watching{
		SchemaVersion: 1, At: s.opt.Now(), Cache: s.watchedCache(), Requests: []*wire.WatchedRequest{},
		Server: wire.WatchedServer{
			Model: s.opt.ModelID, Revision: s.opt.Revision, Profile: s.opt.Profile, Device: s.opt.Device,
			Numerics: s.opt.Numerics, WindowTokens: s.opt.Engine.WindowTokens(),
			PrefillPolicy: s.opt.PrefillPolicy, KVFormat: s.opt.KVFormat, Draft: s.opt.Draft,
			DraftTokens: s.opt.Engine.DraftTokens(), MostDraftTokens: s.opt.Engine.MostDraftTokens(),
			Ready: status.Running && !status.Draining, Active: status.Active, Queued: status.Queued,
			Draining: status.Draining,
		},
	}
	for _, r := range slices.Backward(records) {
		w := watchedOf(r, s.opt.ShowSnippets)
		w.PrefillPolicy = s.opt.PrefillPolicy
		now.Requests = append(now.Requests, w)
	}
	return now, count
}

func (s *Server) watchedCache() *wire.WatchedCache {
	k := s.opt.Keeper
	if k == nil {
		return nil
	}
	tier := func(t memory.Tier) *wire.WatchedTier {
		budget := k.Budget(t)
		if budget.TotalBytes == 0 {
			return nil
		}
		u := k.Usage(t)
		return &wire.WatchedTier{Points: u.Points, Bytes: u.TotalBytes, BudgetBytes: budget.TotalBytes}
	}
	c := k.Counters()
	return &wire.WatchedCache{
		Memory: *tier(memory.InMemory), Disk: tier(memory.OnDisk), FromMemory: c.Hits - c.FromDisk,
		FromDisk: c.FromDisk, FromNothing: c.Misses,
		Saved: c.Saved, Evicted: c.Evicted, Damaged: c.Damaged, WrittenBytes: c.WrittenBytes,
	}
}

const (
	watchEvery   = 250 * time.Millisecond // a bar that moves more often is not easier to read
	mostWatchers = 16                     // event streams at once
)

// events answers GET /slipway/events until the client leaves or the server stops.
func (s *Server) events(w *web.Record, r *http.Request) *turn.Error {
	if s.watchers.Add(1) > mostWatchers {
		s.watchers.Add(-1)
		return &turn.Error{Kind: turn.Unavailable, Code: "too_many_watchers", RetryAfter: 5 * time.Second,
			Sentence: "as many programs watch this server as may; close a monitor page"}
	}
	defer s.watchers.Add(-1)
	out := web.OpenStream(w)
	if r.Method == http.MethodHead {
		return nil
	}
	control := http.NewResponseController(w)
	send := func(write func() error) bool {
		control.SetWriteDeadline(time.Now().Add(web.SendPatience))
		return write() == nil
	}
	now, count := s.watching(0)
	if !send(func() error { return out.Event("snapshot", now) }) {
		return nil
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	server, sent := now.Server, time.Now()
	for now.Server.Ready || now.Server.Active > 0 || now.Server.Queued > 0 {
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
		since := count
		now, count = s.watching(since)
		var write func() error
		switch {
		case count != since || now.Server != server:
			write = func() error { return out.Event("change", now) }
		case time.Since(sent) >= s.opt.KeepAlive:
			write = out.Comment
		default:
			continue
		}
		if !send(write) {
			return nil
		}
		server, sent = now.Server, time.Now()
	}
	return nil
}

const cancelPath = "/slipway/requests/" + web.PathID + "/cancel"

// cancel answers POST /slipway/requests/{id}/cancel.
func (s *Server) cancel(w *web.Record, r *http.Request) *turn.Error {
	o, failure := controlBody(w, r)
	if failure == nil {
		failure = o.Done()
	}
	if failure != nil {
		return failure
	}
	id, _ := web.Route{Path: cancelPath}.Match(r.URL.Path)
	if !s.opt.Engine.Ledger().Cancel(id) {
		return &turn.Error{Kind: turn.NotFound, Code: "not_running",
			Sentence: "no such request is under way; GET /slipway/requests lists them"}
	}
	web.SendJSON(w, http.StatusOK, wire.Cancelled{ID: id, Cancelled: true})
	return nil
}

// reload answers POST /slipway/reload, which takes as long as loading the weights does.
func (s *Server) reload(w *web.Record, r *http.Request) *turn.Error {
	o, failure := controlBody(w, r)
	if failure != nil {
		return failure
	}
	drain, _ := o.Boolean("drain")
	if failure := o.Done(); failure != nil {
		return failure
	}
	began := s.opt.Now()
	err := s.opt.Engine.Reload(r.Context(), drain)
	switch {
	case errors.Is(err, serve.ErrBusy):
		return &turn.Error{Kind: turn.Conflict, Code: "busy",
			Sentence: `requests are running; wait for them, cancel them, or send {"drain": true} to let them end first`}
	case errors.Is(err, serve.ErrReloading):
		return &turn.Error{Kind: turn.Conflict, Code: "reloading", Sentence: "the model is being reloaded already"}
	case err != nil && r.Context().Err() != nil:
		return &turn.Error{Kind: turn.Cancelled, Code: "cancelled",
			Sentence: "the client left before the reload began, so it was taken back"}
	case err != nil:
		return turn.AsError(err)
	}
	for _, w := range s.wires {
		if keeps, ok := w.(web.Keeper); ok {
			keeps.Forget()
		}
	}
	web.SendJSON(w, http.StatusOK, wire.Reloaded{Reloaded: true, TookMs: millis(s.opt.Now().Sub(began))})
	return nil
}

// draft answers POST /slipway/draft.
func (s *Server) draft(w *web.Record, r *http.Request) *turn.Error {
	o, failure := controlBody(w, r)
	if failure != nil {
		return failure
	}
	most := s.opt.Engine.MostDraftTokens()
	n, given := o.Integer("tokens", 0, int64(most))
	if !given {
		o.Fail("tokens", "is required: how many tokens are drafted at a time, 0 to %d", most)
	}
	if failure := o.Done(); failure != nil {
		return failure
	}
	s.opt.Engine.SetDraftTokens(int(n))
	s.opt.Log.Info("drafting is set", "draft", s.opt.Draft, "tokens", n)
	web.SendJSON(w, http.StatusOK, wire.DraftSet{Draft: s.opt.Draft, Tokens: int(n)})
	return nil
}

// mostControl bounds the body of a control request.
const mostControl = 4 << 10

// controlBody reads a body that is an object; an empty one counts as {}.
func controlBody(w http.ResponseWriter, r *http.Request) (*web.Object, *turn.Error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostControl))
	if err != nil {
		return nil, turn.Invalid("", "the body did not arrive whole, or has more than %d bytes", mostControl)
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		raw = []byte("{}")
	}
	return web.ReadBody(raw)
}
