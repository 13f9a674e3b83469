package web

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"slipway/engine/api/turn"
)

// Wire is one API's shapes over the common turns.
type Wire interface {
	Routes() []Route
	// Spoken names the API and where it is, for those who asked elsewhere: "OpenAI at /v1/chat/completions".
	Spoken() string
	// Error gives the status and the JSON document of a refusal or failure.
	Error(*turn.Error) (status int, document any)
}

// Keeper is a wire that keeps conversations for its clients. A reload drops them.
type Keeper interface {
	Forget()
}

// Route is a path that a wire answers.
type Route struct {
	Method string // GET also answers HEAD
	Path   string // "/" at the end matches all paths below it, [PathID] one segment
	Header string // only requests that have this header are meant; empty: all others
	// Handle answers. A returned error becomes the response, in the wire's form. A handler that has begun its response
	// sends later errors itself.
	Handle func(*Record, *http.Request) *turn.Error
}

// PathID matches one segment of a route's path.
const PathID = "{id}"

// Match gives what the variable part of the route's path is in a path, and whether the path is the route's.
func (r Route) Match(path string) (id string, ok bool) {
	before, after, segment := strings.Cut(r.Path, PathID)
	id, ok = strings.CutPrefix(path, before)
	if !segment {
		return id, ok && (id == "" || strings.HasSuffix(r.Path, "/"))
	}
	rest, ends := strings.CutSuffix(id, after)
	return rest, ok && ends && rest != "" && !strings.Contains(rest, "/")
}

// StatusOf is HTTP's status for a kind of error.
func StatusOf(kind turn.Kind) int {
	switch kind {
	case turn.InvalidRequest:
		return http.StatusBadRequest
	case turn.Unauthorized:
		return http.StatusUnauthorized
	case turn.Forbidden:
		return http.StatusForbidden
	case turn.NotFound:
		return http.StatusNotFound
	case turn.WrongMethod:
		return http.StatusMethodNotAllowed
	case turn.Conflict:
		return http.StatusConflict
	case turn.TooLarge:
		return http.StatusRequestEntityTooLarge
	case turn.WrongMedia:
		return http.StatusUnsupportedMediaType
	case turn.Cancelled:
		return statusClientClosed
	case turn.QueueFull:
		return http.StatusTooManyRequests
	case turn.Unsupported:
		return http.StatusNotImplemented
	case turn.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// statusClientClosed is the number that web servers write down for a request whose client went away. Only a client
// that closed its sending side alone reads it.
const statusClientClosed = 499

// Record is a response that remembers what was sent, for the log and for the choice between a status and an error
// in the body.
type Record struct {
	http.ResponseWriter
	ID     string // of the request
	Wire   Wire   // whose form errors take
	Status int    // 0 until the head is sent

	Refused *turn.Error // that ended the request; nil: none
}

// WriteHeader implements http.ResponseWriter.
func (r *Record) WriteHeader(status int) {
	if r.Status == 0 {
		r.Status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *Record) Write(p []byte) (int, error) {
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController through.
func (r *Record) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Refuse sends an error as the response; where a response has begun, it only remembers it.
func (r *Record) Refuse(err *turn.Error) {
	r.Refused = err
	if r.Status == 0 {
		SendError(r, r.Wire, err)
	}
}

// SendError sends a refusal as the whole response.
func SendError(w http.ResponseWriter, wire Wire, err *turn.Error) {
	status, document := wire.Error(err)
	if err.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(err.RetryAfter.Seconds())))
	}
	SendJSON(w, status, document)
}

// SendJSON sends a document as the whole response.
func SendJSON(w http.ResponseWriter, status int, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		panic(err) // all our values are plain
	}
	setJSON(w.Header())
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

func setJSON(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
}

// Allow refuses a method; methods are those that the path answers.
func Allow(w http.ResponseWriter, methods ...string) *turn.Error {
	allow := strings.Join(methods, ", ")
	w.Header().Set("Allow", allow)
	return &turn.Error{Kind: turn.WrongMethod, Code: "method_not_allowed", Sentence: "this path answers " + allow}
}
