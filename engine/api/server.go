package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"slipway/engine/memory/keep"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// Engine is what this package needs of the queue; *serve.Engine is it.
type Engine interface {
	Submit(context.Context, serve.Request) (*serve.Reply, error)
	Status() serve.Status // takes no lock
	WindowTokens() int
	Ledger() *serve.Ledger
	Reload(ctx context.Context, drain bool) error
}

// Options of a server. Without an Engine the server is loading: it answers /health, and everything else with 503.
type Options struct {
	Engine      Engine
	Tokenizer   *text.Tokenizer
	Template    *text.Template
	VocabTokens int           // ids of the tokenizer
	Defaults    sample.Params // the model's own sampling values
	Keeper      *keep.Keeper  // the engine's; nil: nothing is kept between requests

	ModelID  string
	Revision string // 40 hex digits, or empty where unknown
	Version  string
	LaunchID string
	Profile  string // that the server's settings were made of; empty where unknown
	PID      int
	Started  time.Time // of the process

	// For those who watch; empty where not known.
	Device, Numerics, KVFormat, PrefillPolicy string
	// Approximations are what of the settings may change answers, named in every usage; nil: nothing.
	Approximations []string
	ShowSnippets   bool // text around a miss is shown to them: the server listens on loopback alone

	Memory     func() Memory  // nil: not told
	GPU        func() GPU     // nil: there is none
	Machine    func() Machine // nil: not told
	LaunchFile string         // what the installer left behind, see [Launch]; empty: none

	Key        *Key     // nil: none needed
	AllowHosts []string // names that a Host header may give besides loopback and the connection's own address

	Normalize []Rule        // of system messages
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
	large chan struct{} // the place of the one large body

	watchers   atomic.Int32 // event streams
	launchTold atomic.Bool  // a damaged LaunchFile was logged
}

// New makes a server.
func New(opt Options) *Server {
	hosts := map[string]bool{}
	for _, host := range opt.AllowHosts {
		hosts[strings.ToLower(host)] = true
	}
	if opt.Metrics == nil {
		opt.Metrics = NewMetrics(opt.Log, func() serve.Status { return serve.Status{} }, opt.Version, opt.ModelID, opt.Revision)
	}
	opt.Metrics.keeper, opt.Metrics.memory, opt.Metrics.gpu = opt.Keeper, opt.Memory, opt.GPU
	return &Server{opt: opt, guard: guard{key: opt.Key, hosts: hosts}, large: make(chan struct{}, 1)}
}

// Handler answers every path.
func (s *Server) Handler() http.Handler {
	posts := map[string]func(http.ResponseWriter, *http.Request, *record) *Error{
		"/v1/chat/completions": s.chat,
		"/v1/completions":      s.completions,
		"/slipway/reload":      s.reload,
	}
	gets := map[string]http.HandlerFunc{
		"/v1/models":        s.models,
		"/health":           s.health,
		"/metrics":          s.opt.Metrics.ServeHTTP,
		"/slipway/requests": s.watch,
		"/slipway/events":   s.events,
		"/slipway/system":   s.system,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &record{ResponseWriter: w, id: newID("req_")}
		w.Header().Set("X-Request-Id", rec.id)
		defer s.account(r, rec)
		if err := s.guard.check(r); err != nil {
			rec.refuse(err)
			return
		}
		if s.opt.Engine == nil && r.URL.Path != "/health" {
			rec.refuse(&Error{Status: http.StatusServiceUnavailable, Message: "the model is being loaded; try again in a few seconds",
				Type: "server_error", Code: "loading", RetryAfter: 5 * time.Second})
			return
		}
		post, ok := posts[r.URL.Path]
		if _, cancels := requestOf(r.URL.Path); cancels {
			post, ok = s.cancel, true
		}
		if ok {
			if err := s.post(rec, r, post); err != nil {
				rec.refuse(err)
			}
			return
		}
		get, ok := gets[r.URL.Path]
		if !ok && strings.HasPrefix(r.URL.Path, "/v1/models/") {
			get, ok = s.model, true
		}
		switch {
		case !ok:
			rec.refuse(&Error{Status: http.StatusNotFound, Message: fmt.Sprintf("there is nothing at %.100q", r.URL.Path), Type: "invalid_request_error", Code: "not_found"})
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			rec.refuse(wrongMethod("GET, HEAD"))
		default:
			get(rec, r)
		}
	})
}

func wrongMethod(allow string) *Error {
	return &Error{Status: http.StatusMethodNotAllowed, Message: "this path answers " + allow, Type: "invalid_request_error", Code: "method_not_allowed", Allow: allow}
}

func (s *Server) post(rec *record, r *http.Request, handle func(http.ResponseWriter, *http.Request, *record) *Error) *Error {
	if r.Method != http.MethodPost {
		return wrongMethod("POST")
	}
	if err := jsonBody(r); err != nil {
		return err
	}
	return handle(rec, r, rec)
}

// wrongModel refuses every model but the one that is served, with the list.
func (s *Server) wrongModel(o *object) *Error {
	name, given := o.str("model")
	if o.err != nil {
		return o.err
	}
	if !given {
		return invalid("model", "is required; this server has %q", s.opt.ModelID)
	}
	if name != s.opt.ModelID {
		return &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("the model %.100q is not here; this server has: %s", name, s.opt.ModelID),
			Type: "invalid_request_error", Param: "model", Code: "model_not_found"}
	}
	return nil
}

// record remembers what was sent, for the log and for the choice between a status and an error in the body.
type record struct {
	http.ResponseWriter
	id      string
	status  int // 0 until the head is sent
	refused *Error
}

func (r *record) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *record) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController through.
func (r *record) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// refuse sends an error as the response; where a response has begun, it only remembers it.
func (r *record) refuse(err *Error) {
	r.refused = err
	if r.status == 0 {
		err.write(r)
	}
}

// account logs a request and keeps a panic from ending more than its own. No text of prompts, replies or members is logged.
func (s *Server) account(r *http.Request, rec *record) {
	http.NewResponseController(rec).SetWriteDeadline(time.Time{}) // the connection may serve another request
	if value := recover(); value != nil && value != http.ErrAbortHandler {
		s.opt.Log.Error("a bug ended a request", "request", rec.id, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
		rec.refuse(asError(errors.New("panic")))
		if rec.status != rec.refused.Status {
			defer panic(http.ErrAbortHandler) // half a response must not look whole
		}
	}
	if rec.refused != nil && rec.refused.Status != statusClientClosed { // that one the engine has counted
		s.opt.Metrics.refuse(rec.refused.Code)
		s.opt.Log.Warn("refused", "request", rec.id, "method", r.Method, "status", rec.refused.Status, "code", rec.refused.Code, "sent", rec.status)
	}
}

// newID gives prefix and 24 hex digits of the system's randomness: unique without a register.
func newID(prefix string) string {
	var b [12]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

func (s *Server) random(b []byte) { rand.Read(b) }

// fingerprint names what a seed is good for: the same fingerprint, seed and request give the same reply.
func (s *Server) fingerprint() string {
	revision := s.opt.Revision
	if len(revision) > 8 {
		revision = revision[:8]
	}
	return strings.TrimSuffix("slipway-"+s.opt.Version+"-"+revision, "-")
}
