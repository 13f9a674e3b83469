package testhub

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Place is where a request goes.
type Place string

const (
	Tree    Place = "tree"
	Resolve Place = "resolve"
	CDN     Place = "cdn"
	Git     Place = "git"
)

// Kind is what goes wrong.
type Kind string

const (
	Status      Kind = "status"        // answer with Status, Header and Text
	Cut         Kind = "cut"           // After bytes, then the connection closes
	Reset       Kind = "reset"         // After bytes, then the connection is reset
	Stall       Kind = "stall"         // After bytes, then nothing until the client leaves
	Whole       Kind = "whole"         // Range is ignored: 200
	Gzip        Kind = "gzip"          // the body is compressed although the client did not ask for it
	HTML        Kind = "html"          // 200 with a web page
	WrongBytes  Kind = "wrong bytes"   // the byte at After is another one
	WrongRange  Kind = "wrong range"   // Content-Range tells of other bytes
	WrongTotal  Kind = "wrong total"   // Content-Range tells of another size
	Longer      Kind = "longer"        // more bytes than there are, with a length to match
	Shorter     Kind = "shorter"       // fewer bytes, with a length to match
	NoLength    Kind = "no length"     // chunked, no Content-Length
	NoLengthCut Kind = "no length cut" // chunked and ended early, cleanly
	NewETag     Kind = "new etag"      // another validator each time
	BareResolve Kind = "bare resolve"  // none of the hub's own headers; a redirect with a body of its own
	Trickle     Kind = "trickle"       // one kilobyte at a time
	Redirect    Kind = "redirect"      // to Text
)

// Fault goes wrong Times times (0: once; negative: always), after Skip requests that match went right.
type Fault struct {
	Place  Place
	Path   string // the end of the request's path; "" is any
	Kind   Kind
	Skip   int
	Times  int
	After  int64
	Status int
	Header map[string]string
	Text   string
	Wait   time.Duration // of Trickle, per kilobyte
}

// Script adds faults. The first that matches and has not run out is taken.
func (s *Server) Script(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		if f.Times == 0 {
			f.Times = 1
		}
		s.faults = append(s.faults, &f)
	}
}

// Calm takes all faults away.
func (s *Server) Calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) fault(place Place, path string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.Place != place || !strings.HasSuffix(path, f.Path) || f.Times == 0 {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		return f
	}
	return nil
}

// silent answers nothing until the client leaves, where a stall is to come before the first byte.
func silent(r *http.Request, f *Fault) bool {
	if f == nil || f.Kind != Stall {
		return false
	}
	io.Copy(io.Discard, r.Body) // so that the client's leaving is seen
	<-r.Context().Done()
	return true
}

// plainFault answers faults that need no file. It reports whether it did.
func plainFault(w http.ResponseWriter, f *Fault) bool {
	if f == nil {
		return false
	}
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	switch f.Kind {
	case Status:
		w.WriteHeader(f.Status)
		w.Write([]byte(f.Text))
	case Redirect:
		w.Header().Set("Location", f.Text)
		w.WriteHeader(http.StatusFound)
	case HTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte("<html><body>Please sign in to the network.</body></html>"))
	default:
		return false
	}
	return true
}
