package hub

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"slipway/fault"
	"slipway/manifests"
	"slipway/units"
)

// ErrOffline: HF_HUB_OFFLINE is set.
var ErrOffline = fault.New(fault.Fault{Class: fault.Network, Step: fault.GoOnline},
	"HF_HUB_OFFLINE is set, so nothing is asked of the network")

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
	what, look := fmt.Sprintf("%s: %v", e.URL, e.Err), ""
	if unanswered, ok := errors.AsType[*UnansweredError](e.Err); ok {
		what, look = unanswered.what(), lookAt(unanswered.Settings)
	} else if errors.As(e.Err, new(*WayError)) || errors.Is(e.Err, ErrOffline) {
		what = e.Err.Error() // it names the host itself
	}
	if e.Path != "" {
		fmt.Fprintf(&b, "%s: %s of %s arrived; ", e.Path, units.Short(e.Arrived), units.Short(e.Bytes))
	}
	b.WriteString(what)
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (tried %d times)", e.Attempts)
	}
	return b.String() + look
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
type NotAHubError struct {
	URL, Why string
	Settings []string // that name it, of those that are set
}

func (e *NotAHubError) Error() string {
	return e.URL + " does not answer like a model hub: " + e.Why + andLook(e.Settings)
}

func (c *Client) notAHub(address, why string) *NotAHubError {
	e := &NotAHubError{URL: redactURL(address), Why: why}
	if at, err := url.Parse(address); err == nil && c.proxy(at) == nil {
		e.Settings = c.settingsOf(at)
	}
	return e
}

// andLook is a sentence more on the settings to look at.
func andLook(settings []string) string {
	if len(settings) == 0 {
		return ""
	}
	return ". Look at " + strings.Join(settings, " and ") + ", or unset it"
}

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
