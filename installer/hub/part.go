package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"slipway/fault"
	"slipway/manifests"
	"slipway/units"
)

// PartsError: no source serves a part of a file, and the whole file was not asked for.
type PartsError struct {
	Path  string
	Host  string
	Bytes int64 // of the whole file
}

func (e *PartsError) Error() string {
	return fmt.Sprintf("%s does not serve parts of files, and only a part of %s (%s) is wanted", e.Host, e.Path,
		units.Short(e.Bytes))
}

// Fault: see package fault.
func (e *PartsError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Network, Step: fault.OtherMirror}
}

// Part brings bytes [from, to) of a file and gives them to write in order, at their place in the file. What the hub
// says of the whole file must agree with f; nothing ties the part itself to f's hash. It retries as Download does, from
// where it is, and turns to mirrors; an error of write ends it. Errors: those of Download, *PartsError.
func (c *Client) Part(ctx context.Context, repo string, revision manifests.Revision, f manifests.File, from, to int64,
	write func(b []byte, at int64) error) error {
	var last error
	for _, endpoint := range c.endpoints {
		var err error
		if from, err = c.partFrom(ctx, endpoint, repo, revision, f, from, to, write); err == nil || ctx.Err() != nil {
			return err
		}
		if fatal(err) {
			return err
		}
		if last == nil {
			last = err
		}
	}
	return last
}

// partFrom asks one endpoint. at is how far it came.
func (c *Client) partFrom(ctx context.Context, endpoint, repo string, revision manifests.Revision, f manifests.File,
	from, to int64, write func(b []byte, at int64) error) (at int64, err error) {
	failures, limited := 0, 0
	for at = from; at < to; {
		if err := c.gate.wait(ctx, &c.config); err != nil {
			return at, err
		}
		n, err := c.partOnce(ctx, endpoint, repo, revision, f, at, to, write)
		if at += n; n > 0 {
			failures, limited = 0, 0
		}
		var late *limitedAnswer
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return at, ctx.Err()
		case errors.As(err, &late):
			if limited++; limited > maxLimited {
				return at, &LimitedError{late.url, late.wait}
			}
			c.gate.close(c.config.Now().Add(late.wait))
			c.tell.say(limitNotice(late.wait, f.Path))
			err = c.config.Sleep(ctx, late.wait)
			if err != nil {
				return at, err
			}
			continue
		case fatal(err), errors.As(err, new(*PartsError)):
			return at, err
		}
		tries := maxTries
		if at == from { // what never began is worth fewer
			tries = triesAt(err)
		}
		if failures++; failures >= tries {
			return at, &NetworkError{URL: redactURL(endpoint), Path: f.Path, Attempts: failures, Arrived: at - from,
				Bytes: to - from, Err: bareNetwork(err)}
		}
		if err := c.waitToRetry(ctx, failures, tries, err); err != nil {
			return at, err
		}
	}
	return at, nil
}

// partOnce makes one request. n counts bytes that were written.
func (c *Client) partOnce(ctx context.Context, endpoint, repo string, revision manifests.Revision, f manifests.File,
	from, to int64, write func(b []byte, at int64) error) (n int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ask := resolveURL(endpoint, repo, revision, f.Path)
	answer, chain, err := c.get(ctx, ask, http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", from, to-1)}}, nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusTooManyRequests {
		return 0, &limitedAnswer{redactURL(ask), rateWait(answer.Header, c.config.Now())}
	}
	if way := c.obstacleIn(answer); way != nil {
		return 0, way
	}
	if err := c.checkHubAnswer(endpoint, repo, revision, f, answer, chain); err != nil {
		return 0, err
	}
	switch outcome, why := judge(answer, false, from, to, f.Size); outcome {
	case takeBytes:
	case wholeInstead:
		return 0, &PartsError{f.Path, answer.Request.URL.Host, f.Size}
	default:
		return 0, &NetworkError{URL: redactURL(answer.Request.URL.String()), Err: why}
	}
	watch := newStallWatch(c.config.StallTimeout, cancel)
	defer watch.stop()
	buffer := make([]byte, writeBufferBytes)
	for n < to-from {
		got, err := answer.Body.Read(buffer[:min(int64(len(buffer)), to-from-n)])
		if got > 0 {
			watch.alive()
			if werr := write(buffer[:got], from+n); werr != nil {
				return n, &localError{werr}
			}
			n += int64(got)
			if perr := c.pace.take(ctx, got, &c.config); perr != nil {
				return n, perr
			}
		}
		switch {
		case n == to-from:
		case errors.Is(err, io.EOF):
			return n, &NetworkError{URL: redactURL(answer.Request.URL.String()), Err: io.ErrUnexpectedEOF}
		case err != nil:
			return n, &NetworkError{URL: redactURL(answer.Request.URL.String()), Err: bare(watch.explain(err))}
		}
	}
	return n, nil
}
