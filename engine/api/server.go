package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/memory/keep"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
	"slipway/wire"
)

// Engine is what this package needs of the queue; *serve.Engine is it.
type Engine interface {
	turn.Engine
	Status() serve.Status // takes no lock
	Reload(ctx context.Context, drain bool) error
	DraftTokens() int
	SetDraftTokens(n int) bool
}

// Options of a server. Without an Engine the server is loading: it answers /health, and everything else with 503.
type Options struct {
	Engine   Engine
	Text     *text.Model
	Defaults sample.Params // the model's own sampling values
	Keeper   *keep.Keeper  // the engine's; nil: nothing is kept between requests

	ModelID  string
	Revision string // 40 hex digits, or empty where unknown
	Version  string
	LaunchID string
	Profile  string // that the server's settings were made of; empty where unknown
	PID      int
	Started  time.Time // of the process

	// For those who watch; empty where not known.
	Device, Numerics, KVFormat, PrefillPolicy, Draft string
	// Approximations are what of the settings may change answers, named in every usage; nil: nothing.
	Approximations []string
	ShowSnippets   bool // text around a miss is shown to them: the server listens on loopback alone

	Memory     func() wire.Memory  // nil: unknown
	GPU        func() wire.GPU     // nil: there is none
	Machine    func() wire.Machine // nil: unknown
	LaunchFile string              // that the installer wrote, see [wire.Launch]; empty: none

	Key          *Key     // nil: none needed
	AllowHosts   []string // names that a Host header may give besides loopback and the connection's own address
	AllowOrigins []string // whose pages may ask, as [wire.ReadOrigin] gives them; they need Key or OriginKey
	OriginKey    *Key     // that those pages send instead of Key; nil: Key

	Normalize []turn.Rule   // of system messages
	BodyBytes int64         // the most that a request's body may have
	KeepAlive time.Duration // silence after which a waiting client is sent something
	Now       func() time.Time
	Log       *slog.Logger
	Metrics   *Metrics
}

// Server is the HTTP face of one model.
type Server struct {
	opt   Options
	guard guard
	wires []web.Wire

	watchers     atomic.Int32 // event streams
	launchWarned atomic.Bool  // a damaged LaunchFile was logged
}

// New makes a server.
func New(opt Options) *Server {
	hosts := map[string]bool{}
	for _, host := range opt.AllowHosts {
		hosts[strings.ToLower(host)] = true
	}
	if opt.Metrics == nil {
		opt.Metrics = NewMetrics(opt.Log, func() serve.Status { return serve.Status{} }, opt.Version, opt.ModelID,
			opt.Revision)
	}
	opt.Metrics.keeper, opt.Metrics.memory, opt.Metrics.gpu = opt.Keeper, opt.Memory, opt.GPU
	if len(opt.AllowOrigins) > 0 && opt.Key == nil && opt.OriginKey == nil {
		panic("api: origins are allowed without a key")
	}
	s := &Server{opt: opt, guard: guard{key: opt.Key, originKey: opt.OriginKey, hosts: hosts,
		origins: opt.AllowOrigins}}
	s.wires = wires(turn.New(turn.Options{
		Engine: opt.Engine, Text: opt.Text, Defaults: opt.Defaults,
		Keeper: opt.Keeper, Normalize: opt.Normalize, Approximations: opt.Approximations, Now: opt.Now,
		Model: turn.Model{ID: opt.ModelID, Revision: opt.Revision, Version: opt.Version, Started: opt.Started},
	}), web.NewBodies(opt.BodyBytes), opt.KeepAlive)
	return s
}

// Handler answers every path.
func (s *Server) Handler() http.Handler {
	routes := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := strings.TrimRight(r.URL.Path, "/"); path != "" { // some clients write one at the end
			r.URL.Path = path
		}
		route, methods := routes.find(r)
		rec := &web.Record{ResponseWriter: w, ID: turn.NewID("req_"), Wire: s.wireOf(route)}
		w.Header().Set("X-Request-Id", rec.ID)
		w.Header().Set("Request-Id", rec.ID) // Anthropic's name for it
		defer s.account(r, rec)
		if failure := s.answer(rec, r, route, methods); failure != nil {
			rec.Refuse(failure)
		}
	})
}

func (s *Server) answer(rec *web.Record, r *http.Request, route *route, methods []string) *turn.Error {
	inference := route != nil && route.wire != nil
	origin, failure := s.guard.check(r, inference)
	if inference && len(s.guard.origins) > 0 {
		share(rec.Header(), origin)
	}
	if failure != nil {
		return failure
	}
	if origin != "" && isPreflight(r) {
		answerPreflight(rec, r, methods)
		return nil
	}
	if s.opt.Engine == nil && r.URL.Path != "/health" {
		return &turn.Error{Kind: turn.Unavailable, Code: "loading", RetryAfter: 5 * time.Second,
			Sentence: "the model is being loaded; try again in a few seconds"}
	}
	if route == nil {
		return s.nothingAt(r.URL.Path)
	}
	if !slices.Contains(methods, r.Method) {
		return web.Allow(rec, methods...)
	}
	if r.Method == http.MethodPost {
		if failure := jsonBody(r); failure != nil {
			return failure
		}
	}
	return route.Handle(rec, r)
}

// nothingAt says what is spoken where.
func (s *Server) nothingAt(path string) *turn.Error {
	var spoken []string
	for _, w := range s.wires {
		spoken = append(spoken, w.Spoken())
	}
	return &turn.Error{Kind: turn.NotFound, Code: "not_found", Sentence: fmt.Sprintf(
		"there is nothing at %.100q; this server speaks %s", path, strings.Join(spoken, "; "))}
}

// account logs a request and keeps a panic from ending more than its own. No text of prompts, replies or members is
// logged.
func (s *Server) account(r *http.Request, rec *web.Record) {
	http.NewResponseController(rec).SetWriteDeadline(time.Time{}) // the connection may serve another request
	if value := recover(); value != nil && value != http.ErrAbortHandler {
		s.opt.Log.Error("a bug ended a request", "request", rec.ID, "panic", fmt.Sprint(value),
			"stack", string(debug.Stack()))
		rec.Refuse(turn.AsError(errors.New("panic")))
		if rec.Status != web.StatusOf(rec.Refused.Kind) {
			defer panic(http.ErrAbortHandler) // half a response must not look complete
		}
	}
	if e := rec.Refused; e != nil && e.Kind != turn.Cancelled { // that one the engine has counted
		s.opt.Metrics.refuse(e.Code)
		status, _ := rec.Wire.Error(e)
		s.opt.Log.Warn("refused", "request", rec.ID, "method", r.Method, "status", status, "code", e.Code,
			"sent", rec.Status)
	}
}
