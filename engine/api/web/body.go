package web

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
	"unicode/utf8"

	"slipway/engine/api/turn"
)

const (
	// bodyPatience is how long a body may take to arrive; 32 MiB over a slow wireless LAN take some ten seconds. It
	// is also how long a large body waits for another one.
	bodyPatience = 60 * time.Second

	// smallBody bounds the bodies that are read as they come. English that fills a window of 262,144 tokens has
	// about as much. Larger ones are read, understood and tokenised one at a time: each takes several times its
	// size in memory.
	smallBody = 1 << 20
)

// Bodies reads the bodies of requests, large ones one at a time.
type Bodies struct {
	most  int64         // bytes of one
	large chan struct{} // the place of the one large body
}

// NewBodies reads bodies of at most most bytes.
func NewBodies(most int64) *Bodies { return &Bodies{most, make(chan struct{}, 1)} }

// Read reads the whole body, a JSON object, which also lets the server notice when the client leaves. Its memory is
// given back with release, which is never nil and may be called more than once.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request) (o *Object, release func(), failure *turn.Error) {
	control := http.NewResponseController(w)
	deadline := time.Now().Add(bodyPatience)
	control.SetReadDeadline(deadline)
	defer control.SetReadDeadline(time.Time{})
	release = func() {}
	body, err := b.decoded(http.MaxBytesReader(w, r.Body, b.most), r.Header.Get("Content-Encoding"))
	var raw bytes.Buffer
	if err == nil {
		_, err = io.Copy(&raw, io.LimitReader(body, smallBody))
	}
	if err == nil && raw.Len() == smallBody {
		if release, failure = b.largeBody(deadline); failure != nil {
			return nil, release, failure
		}
		control.SetReadDeadline(time.Now().Add(bodyPatience)) // waiting was not the client's fault
		if more := int(min(r.ContentLength, b.most)) - raw.Len(); more > 0 {
			raw.Grow(more + bytes.MinRead)
		}
		_, err = raw.ReadFrom(body)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), int64(raw.Len()) > b.most:
		failure = &turn.Error{Kind: turn.TooLarge, Code: "body_too_large",
			Sentence: fmt.Sprintf("the body is larger than %d bytes, the most that is read", b.most)}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, new(flate.CorruptInputError)):
		failure = turn.Invalid("", "the body is not the gzip that its Content-Encoding says")
	case err != nil:
		failure = turn.Invalid("", "the body did not arrive whole")
	case !utf8.Valid(raw.Bytes()):
		// The JSON reader would put U+FFFD in its place.
		failure = turn.Invalid("", "the body is not UTF-8: byte %d belongs to no character", firstInvalid(raw.Bytes()))
	default:
		o, failure = ReadBody(bytes.TrimPrefix(raw.Bytes(), []byte("\uFEFF"))) // some clients begin with a BOM
	}
	return o, release, failure
}

// decoded gives the bytes of a body that may be compressed, at most one more than is allowed.
func (b *Bodies) decoded(body io.Reader, encoding string) (io.Reader, error) {
	if encoding != "gzip" {
		return body, nil
	}
	inner, err := gzip.NewReader(body)
	return io.LimitReader(inner, b.most+1), err
}

// largeBody waits for the place of the one large body. Its memory is given back to the system at once when it is
// done: the model needs it more than the next large body, which may never come.
func (b *Bodies) largeBody(deadline time.Time) (release func(), failure *turn.Error) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case b.large <- struct{}{}:
		return sync.OnceFunc(func() {
			debug.FreeOSMemory()
			<-b.large
		}), nil
	case <-timer.C:
		return func() {}, &turn.Error{Kind: turn.Unavailable, Code: "busy", RetryAfter: 5 * time.Second,
			Sentence: "another large request is being read; try again in a few seconds"}
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
