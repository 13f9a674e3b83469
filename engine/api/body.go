package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// bodyPatience is how long a body may take to arrive; 32 MiB over a slow wireless LAN take some ten seconds. It is also
	// how long a large body waits for another one.
	bodyPatience = 60 * time.Second

	// smallBody bounds the bodies that are read as they come. English that fills a window of 262,144 tokens has about as
	// much. Larger ones are read, understood and tokenised one at a time: each takes several times its size in memory.
	smallBody = 1 << 20
)

// body reads the whole body, which also lets the server notice when the client leaves. What it takes up is given back with
// release, which may be called more than once.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (o *object, release func(), failure *Error) {
	control := http.NewResponseController(w)
	deadline := time.Now().Add(bodyPatience)
	control.SetReadDeadline(deadline)
	defer control.SetReadDeadline(time.Time{})
	release = func() {}
	body := http.MaxBytesReader(w, r.Body, s.opt.BodyBytes)
	var raw bytes.Buffer
	_, err := io.Copy(&raw, io.LimitReader(body, smallBody))
	if err == nil && raw.Len() == smallBody {
		if release, failure = s.largeBody(deadline); failure != nil {
			return nil, release, failure
		}
		control.SetReadDeadline(time.Now().Add(bodyPatience)) // waiting was not the client's fault
		if r.ContentLength > 0 {
			raw.Grow(int(min(r.ContentLength, s.opt.BodyBytes)) - raw.Len() + bytes.MinRead)
		}
		_, err = raw.ReadFrom(body)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		failure = &Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the body is larger than %d bytes, the most that is read", s.opt.BodyBytes),
			Type: "invalid_request_error", Code: "body_too_large"}
	case err != nil:
		failure = invalid("", "the body did not arrive whole")
	case !utf8.Valid(raw.Bytes()):
		// The JSON reader would put U+FFFD in its place.
		failure = invalid("", "the body is not UTF-8: byte %d belongs to no character", firstInvalid(raw.Bytes()))
	default:
		o, failure = readBody(raw.Bytes())
	}
	return o, release, failure
}

// largeBody waits for the place of the one large body. Its memory is given back to the system at once when it is done: the
// model needs it more than the next large body, which may never come.
func (s *Server) largeBody(deadline time.Time) (release func(), failure *Error) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case s.large <- struct{}{}:
		return sync.OnceFunc(func() {
			debug.FreeOSMemory()
			<-s.large
		}), nil
	case <-timer.C:
		return func() {}, &Error{Status: http.StatusServiceUnavailable, Message: "another large request is being read; try again in a few seconds",
			Type: "server_error", Code: "busy", RetryAfter: 5 * time.Second}
	}
}

// firstInvalid gives the index of the first byte that belongs to no character; there is one.
func firstInvalid(raw []byte) int {
	at := 0
	for {
		r, size := utf8.DecodeRune(raw[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}
