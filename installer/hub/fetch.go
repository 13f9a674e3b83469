package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"slipway/installer/store"
	"slipway/manifests"
)

// writeBufferBytes: measured with the loopback benchmark, see speed_test.go: 128 KiB to 512 KiB are equal.
const writeBufferBytes = 256 << 10

// maxRestarts: a file that starts over this often without keeping a byte has a source that cannot serve it.
const maxRestarts = 5

// errLeave: the worker must give its piece back now; the transfer knows why.
var errLeave = errors.New("the file starts over")

// fetch brings a piece, with retries; what it could not bring is given back with the piece. An error ends the download.
func (d *download) fetch(ctx context.Context, p *piece, buffer []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t, c := p.transfer, d.client
	t.mu.Lock()
	p.cancel = cancel
	leave := t.restart != nil
	t.mu.Unlock()
	if leave {
		return nil
	}
	failures, limited := 0, 0
	for {
		if err := c.gate.wait(ctx, &c.config); err != nil {
			return d.stopReason(p)
		}
		asked := t.endpointIndex()
		n, err := d.stream(ctx, p, buffer, true)
		if err == nil || errors.Is(err, errLeave) {
			return nil
		}
		if n > 0 {
			failures, limited = 0, 0
		}
		if ctx.Err() != nil {
			return d.stopReason(p)
		}
		var late *limitedAnswer
		if errors.As(err, &late) {
			if limited++; limited > maxLimited {
				return &LimitedError{late.url, late.wait}
			}
			c.gate.close(c.config.Now().Add(late.wait))
			d.fewer()
			d.tell.say(limitNotice(late.wait, t.file.Path))
			if c.config.Sleep(ctx, late.wait) != nil {
				return d.stopReason(p)
			}
			continue
		}
		if fatal(err) {
			return err
		}
		if n > 0 && t.inOneStream() {
			return d.again(d.ctx, t, asked, err)
		}
		tries := d.triesAt(err)
		if failures++; failures >= tries {
			if t.nextEndpoint(asked) {
				d.tell.say(Event{Kind: Notice, Path: t.file.Path, Why: fmt.Sprintf("%s does not bring %s; trying %s.",
					redactHost(err), t.file.Path, redactURL(t.endpointNow()))})
				failures = 0
				continue
			}
			return d.exhausted(t, failures, err)
		}
		wait := c.backoff(failures)
		d.waiting(Event{Kind: Waiting, Path: t.file.Path, Wait: wait,
			Why: fmt.Sprintf("%v. Trying again (%d of %d).", bareNetwork(err), failures+1, tries)})
		if c.config.Sleep(ctx, wait) != nil {
			return d.stopReason(p)
		}
	}
}

// triesAt is how often a piece is asked for in all: what came to a stop in the middle is worth more tries than what
// never began.
func (d *download) triesAt(err error) int {
	d.mu.Lock()
	began := d.arrivedBytes > 0
	d.mu.Unlock()
	switch way, ok := errors.AsType[*WayError](err); {
	case began:
		return maxTries
	case ok && way.Kind != WebPage:
		return 1
	}
	return triesAt(err)
}

// again starts the whole file over, a bounded number of times.
func (d *download) again(ctx context.Context, t *transfer, asked int, why error) error {
	restarts := t.startOver(why, false)
	if restarts >= maxRestarts {
		if t.nextEndpoint(asked) {
			return nil
		}
		return d.exhausted(t, restarts, why)
	}
	d.tell.say(Event{Kind: Waiting, Path: t.file.Path, Wait: d.client.backoff(restarts),
		Why: fmt.Sprintf("%v. Starting this file over (%d of %d).", bareNetwork(why), restarts+1, maxRestarts)})
	return d.client.config.Sleep(ctx, d.client.backoff(restarts))
}

func (d *download) exhausted(t *transfer, tries int, err error) error {
	if way, ok := errors.AsType[*WayError](err); ok && tries == 1 {
		return way
	}
	address := t.endpointNow()
	var network *NetworkError
	if errors.As(err, &network) {
		address = network.URL
	}
	return &NetworkError{URL: redactURL(address), Path: t.file.Path, Attempts: tries, Arrived: t.arrived(),
		Bytes: t.file.Size, Err: bareNetwork(err)}
}

// stopReason: cancelled because the file starts over is no error; cancelled because the download stops is its own.
func (d *download) stopReason(p *piece) error {
	p.transfer.mu.Lock()
	defer p.transfer.mu.Unlock()
	if p.transfer.restart != nil {
		return nil
	}
	return d.ctx.Err()
}

// fatal errors are not mended by asking again.
func fatal(err error) bool {
	var access *AccessError
	var differs *UpstreamDiffersError
	var redirect *RedirectError
	var notHub *NotAHubError
	var space *store.NoSpaceError
	var local *localError
	var way *WayError
	return errors.As(err, &access) || errors.As(err, &differs) || errors.As(err, &redirect) ||
		errors.As(err, &notHub) ||
		errors.As(err, &space) || errors.As(err, &local) || errors.Is(err, ErrOffline) ||
		errors.As(err, &way) && !way.Kind.passing()
}

// localError: our own disk failed.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

// limitedAnswer: a 429.
type limitedAnswer struct {
	url  string
	wait time.Duration
}

func (e *limitedAnswer) Error() string { return "the hub limits requests" }

// stream makes one request for what is missing of the piece and writes what comes. n counts bytes that are kept.
func (d *download) stream(ctx context.Context, p *piece, buffer []byte, mayResolve bool) (n int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t, c := p.transfer, d.client
	t.mu.Lock()
	from, to, address := p.at, p.to, t.address
	whole := from == 0 && to == t.file.Size && (t.oneStream || t.small())
	header := http.Header{}
	if !whole {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
	}
	validator, validHost := t.etag, t.etagHost
	t.mu.Unlock()
	if from >= to {
		return 0, nil
	}
	endpoint := t.endpointNow()
	ask := resolveURL(endpoint, d.lock.Repo, d.lock.Revision, t.file.Path)
	if address != nil {
		ask = address.String()
	}
	answer, chain, err := c.get(ctx, ask, header, func(r *http.Request) {
		if !whole && validator != "" && r.URL.Host == validHost {
			r.Header.Set("If-Range", validator)
		}
	})
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusTooManyRequests {
		return 0, &limitedAnswer{redactURL(ask), rateWait(answer.Header, c.config.Now())}
	}
	if address == nil {
		if err := c.checkHubAnswer(endpoint, d.lock.Repo, d.lock.Revision, t.file, answer, chain); err != nil {
			return 0, err
		}
	}
	wrap := func(err error) error {
		return &NetworkError{URL: redactURL(answer.Request.URL.String()), Err: err}
	}
	outcome, why := judge(answer, whole, from, to, t.file.Size)
	switch outcome {
	case takeBytes:
	case wholeInstead:
		if restarts := t.startOver(why, true); restarts >= maxRestarts {
			return 0, d.exhausted(t, restarts, why)
		}
		d.tell.say(Event{Kind: Notice, Path: t.file.Path, Why: "The server does not serve parts of " + t.file.Path +
			"; fetching it in one stream."})
		return 0, errLeave
	case staleAddress:
		t.forget(address)
		if address != nil && mayResolve {
			return d.stream(ctx, p, buffer, false) // a new address costs no try; the refusal of a fresh one does
		}
		return 0, wrap(why)
	default:
		t.forget(address)
		return 0, wrap(why)
	}
	if changed := t.remember(answer, len(chain) > 0); changed {
		why := wrap(errors.New("the file changed on the server while it was being fetched"))
		t.startOver(why, false)
		return 0, errLeave
	}
	watch := newStallWatch(c.config.StallTimeout, cancel)
	defer watch.stop()
	n, err = d.pump(ctx, p, answer, watch, buffer)
	if err != nil {
		if fatal(err) {
			return n, err
		}
		return n, wrap(watch.explain(err))
	}
	return n, nil
}

// pump copies the body to the file until the piece ends. A whole body must end there too.
func (d *download) pump(ctx context.Context, p *piece, answer *http.Response, watch *stallWatch,
	buffer []byte) (n int64, err error) {
	t, c := p.transfer, d.client
	for {
		got, err := answer.Body.Read(buffer)
		if got > 0 {
			watch.alive()
			at, granted := p.claim(got)
			if granted > 0 {
				if _, werr := t.part.WriteAt(buffer[:granted], at); werr != nil {
					return n, &localError{werr}
				}
				p.wrote(granted)
				n += int64(granted)
				d.arrived(t, granted)
			}
			if granted < got && p.end() == t.file.Size && answer.StatusCode == http.StatusOK {
				return n, &AnswerError{answer.StatusCode, "more bytes came than the file has"}
			}
			if perr := c.pace.take(ctx, got, &c.config); perr != nil {
				return n, perr
			}
		}
		ended := p.position() >= p.end()
		switch {
		case ended && (errors.Is(err, io.EOF) || answer.ContentLength >= 0 || p.end() < t.file.Size):
			if err == nil {
				answer.Body.Read(buffer[:1]) // sees the end, so that the connection is used again
			}
			return n, nil
		case errors.Is(err, io.EOF):
			return n, io.ErrUnexpectedEOF
		case err != nil:
			return n, bare(err)
		}
	}
}

func (p *piece) position() int64 {
	p.transfer.mu.Lock()
	defer p.transfer.mu.Unlock()
	return p.at
}

// checkHubAnswer looks at what the hub itself answered: the first of the chain, or the answer when nothing redirected.
func (c *Client) checkHubAnswer(endpoint, repo string, revision manifests.Revision, f manifests.File,
	answer *http.Response, chain []*http.Response) error {
	fromHub := answer
	if len(chain) > 0 {
		fromHub = chain[0]
		for _, hop := range chain { // a renamed repository, a mirror's own hop: the hub is the one that names a commit
			if hop.Header.Get("X-Repo-Commit") != "" {
				fromHub = hop
			}
		}
	}
	if fromHub == answer && len(chain) == 0 && (answer.StatusCode == 401 || answer.StatusCode == 403 ||
		answer.StatusCode == 404) {
		if c.dropToken(answer, endpoint, repo) {
			return &AnswerError{answer.StatusCode, "the token was refused"}
		}
		if !c.fromOrigin(endpoint) && answer.StatusCode == 404 {
			return &AnswerError{answer.StatusCode, "the mirror does not have it"}
		}
		if refused := c.firstOr(c.refusal(answer, endpoint, repo, repo+"/"+f.Path)); refused != nil {
			return refused
		}
	}
	if fromHub.StatusCode >= 400 {
		return nil // judged by its status
	}
	return c.checkResolve(fromHub, endpoint, revision, f)
}

// remember keeps the address that a redirect led to, and the validator. changed: the validator is another one than
// before, from the same host.
func (t *transfer) remember(answer *http.Response, redirected bool) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if redirected {
		t.address = answer.Request.URL
	}
	host, tag := answer.Request.URL.Host, strongETag(answer.Header)
	changed = !t.etagsLie && t.etagHost == host && t.etag != "" && tag != "" && tag != t.etag &&
		len(t.done)+len(t.pieces) > 1
	// a server with a new one each time is served once more without; the hash decides
	t.etagsLie = t.etagsLie || changed
	if t.etagsLie {
		tag = ""
	}
	t.etag, t.etagHost = tag, host
	return changed
}

// forget drops an address that failed, unless another worker has brought a new one meanwhile.
func (t *transfer) forget(failed *url.URL) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.address == failed {
		t.address = nil
	}
}

func redactHost(err error) string {
	var network *NetworkError
	if errors.As(err, &network) {
		if u, perr := url.Parse(network.URL); perr == nil {
			return u.Host
		}
	}
	return "the source"
}
