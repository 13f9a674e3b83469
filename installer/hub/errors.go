package hub

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"slipway/manifests"
)

// ErrOffline: HF_HUB_OFFLINE is set.
var ErrOffline = errors.New("HF_HUB_OFFLINE is set")

// NetworkError: the network or the hub failed, and trying later makes sense. What arrived is kept.
type NetworkError struct {
	URL      string // without its query
	Path     string // the file, or ""
	Attempts int
	Arrived  int64 // bytes of the file kept so far
	Bytes    int64 // of the file
	Err      error
}

func (e *NetworkError) Error() string {
	var b strings.Builder
	if e.Path != "" {
		fmt.Fprintf(&b, "%s: %d of %d bytes arrived and are kept; ", e.Path, e.Arrived, e.Bytes)
	}
	fmt.Fprintf(&b, "%s: %v", e.URL, e.Err)
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (tried %d times)", e.Attempts)
	}
	return b.String()
}

func (e *NetworkError) Unwrap() error { return e.Err }

// AnswerError: the server answered with something that is not the file asked for.
type AnswerError struct {
	Status int
	What   string
}

func (e *AnswerError) Error() string {
	if e.Status == 0 {
		return e.What
	}
	return fmt.Sprintf("status %d: %s", e.Status, e.What)
}

// UpstreamDiffersError: the hub and the lock disagree about a revision, which never changes. One of them is wrong.
type UpstreamDiffersError struct{ Path, What, Expected, Found string }

func (e *UpstreamDiffersError) Error() string {
	return fmt.Sprintf("%s: the lock says %s %s, the hub says %s", e.Path, e.What, e.Expected, e.Found)
}

// NotAHubError: the address does not answer like a model hub.
type NotAHubError struct{ URL, Why string }

func (e *NotAHubError) Error() string { return e.URL + " does not answer like a model hub: " + e.Why }

// TooLargeError: hubs serve whole files over HTTP up to 50 GB; beyond that they need the Xet protocol, which this
// program does not speak.
type TooLargeError struct {
	Path  string
	Bytes int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes; hubs serve files over plain HTTP up to %d bytes only", e.Path, e.Bytes, int64(maxHTTPBytes))
}

// maxHTTPBytes is the limit of the hub's own client (MAX_HTTP_DOWNLOAD_SIZE).
const maxHTTPBytes = 50e9

// HostileError: the hub listed something that no honest repository holds.
type HostileError struct{ What string }

func (e *HostileError) Error() string { return "the hub's list of files is refused: " + e.What }

// LimitedError: the hub told us to come back later, more often than we were willing to wait.
type LimitedError struct {
	URL  string
	Wait time.Duration
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("%s limits requests; it asks to wait %s more", e.URL, e.Wait)
}

// WrongBytesError: every source brought bytes with another hash.
type WrongBytesError struct {
	Path            string
	Expected, Found manifests.Digest
	Sources         []string
	Kept            string // relative to the home
}

func (e *WrongBytesError) Error() string {
	return fmt.Sprintf("%s: expected %s, found %s from %s; the wrong bytes are kept in %s",
		e.Path, e.Expected, e.Found, strings.Join(e.Sources, " and "), e.Kept)
}
