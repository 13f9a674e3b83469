package hub

import (
	"fmt"
	"strings"
	"time"

	"slipway/fault"
	"slipway/manifests"
	"slipway/units"
)

// ErrOffline: HF_HUB_OFFLINE is set.
var ErrOffline = fault.New(fault.Fault{Class: fault.Network, Step: fault.CheckEndpoint}, "HF_HUB_OFFLINE is set")

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
		fmt.Fprintf(&b, "%s: %s of %s arrived; ", e.Path, units.Short(e.Arrived), units.Short(e.Bytes))
	}
	fmt.Fprintf(&b, "%s: %v", e.URL, e.Err)
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (tried %d times)", e.Attempts)
	}
	return b.String()
}

// Fault is that of the cause, where it carries one: no access, or no hub at all.
func (e *NetworkError) Fault() fault.Fault {
	if f, ok := fault.In(e.Err); ok {
		return f
	}
	return fault.Fault{Class: fault.Network, Step: fault.Resume}
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

// Fault: see package fault.
func (e *UpstreamDiffersError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Stale, Step: fault.Relock}
}

// NotAHubError: the address does not answer like a model hub.
type NotAHubError struct{ URL, Why string }

func (e *NotAHubError) Error() string { return e.URL + " does not answer like a model hub: " + e.Why }

// Fault: see package fault.
func (e *NotAHubError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Network, Step: fault.CheckEndpoint}
}

// TooLargeError: hubs serve whole files over HTTP up to 50 GB; beyond that they need the Xet protocol, which this
// program does not speak.
type TooLargeError struct {
	Path  string
	Bytes int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes; hubs serve files over plain HTTP up to %d bytes only", e.Path, e.Bytes,
		int64(maxHTTPBytes))
}

// Fault: see package fault.
func (e *TooLargeError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Human, Step: fault.OtherTool}
}

// maxHTTPBytes is the limit of the hub's own client (MAX_HTTP_DOWNLOAD_SIZE).
const maxHTTPBytes = 50e9

// HostileError: the hub listed something that no honest repository holds.
type HostileError struct{ What string }

func (e *HostileError) Error() string { return "the hub's list of files is refused: " + e.What }

// Fault: see package fault.
func (e *HostileError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.OtherMirror}
}

// LimitedError: the hub asked us to wait, more often than we were willing to.
type LimitedError struct {
	URL  string
	Wait time.Duration
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("%s limits requests; it asks to wait %s more", e.URL, e.Wait)
}

// Fault: see package fault.
func (e *LimitedError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Network, Step: fault.Resume}
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

// Fault: see package fault.
func (e *WrongBytesError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.OtherMirror}
}
