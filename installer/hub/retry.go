package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	maxTries   = 5               // without a byte in between
	fewTries   = 3               // of a host that did not answer at all: with AnswerTimeout, about a minute
	baseWait   = time.Second     // doubled each time
	longWait   = 8 * time.Second //
	maxLimited = 12              // 429 answers in a row; their own budget
)

// backoff is the wait after the nth failure in a row, n from 1: between half and all of 1, 2, 4, 8, 8 ... seconds.
func (c *Client) backoff(n int) time.Duration {
	wait := baseWait << min(n-1, 6)
	wait = min(wait, longWait)
	return wait/2 + time.Duration(c.config.Jitter()*float64(wait/2))
}

// triesAt is how often is asked in all, where a request failed for this reason.
func triesAt(err error) int {
	if errors.As(err, new(*UnansweredError)) {
		return fewTries
	}
	return maxTries
}

func retryableStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// askHub gets a whole small answer of status 200, with the hub's retries; limit bounds its bytes.
func (c *Client) askHub(ctx context.Context, endpoint, address, repo string, header http.Header,
	limit int64) (*http.Response, []byte, error) {
	failures, limited := 0, 0
	for {
		if err := c.gate.wait(ctx, &c.config); err != nil {
			return nil, nil, err
		}
		answer, body, err := c.askOnce(ctx, address, header, limit)
		if err == nil {
			if way := c.obstacleIn(answer); way != nil {
				return nil, nil, way
			}
			switch {
			case answer.StatusCode == http.StatusOK:
				return answer, body, nil
			case c.dropToken(answer, endpoint, repo):
				continue
			case answer.StatusCode == http.StatusTooManyRequests:
				wait := rateWait(answer.Header, c.config.Now())
				if limited++; limited > maxLimited {
					return nil, nil, &LimitedError{redactURL(address), wait}
				}
				c.gate.close(c.config.Now().Add(wait))
				c.tell.say(limitNotice(wait, ""))
				if err := c.config.Sleep(ctx, wait); err != nil {
					return nil, nil, err
				}
				continue
			}
			if refused := c.firstOr(c.refusal(answer, endpoint, repo, repo)); refused != nil {
				return nil, nil, refused
			}
			err = &AnswerError{answer.StatusCode, "not an answer to what was asked"}
			if !retryableStatus(answer.StatusCode) {
				return nil, nil, &NetworkError{URL: redactURL(address), Attempts: 1, Err: err}
			}
		}
		var redirect *RedirectError
		if way, ok := errors.AsType[*WayError](err); ok {
			return nil, nil, way
		}
		if ctx.Err() != nil || errors.As(err, &redirect) || errors.Is(err, ErrOffline) {
			return nil, nil, errors.Join(ctx.Err(), err)
		}
		tries := triesAt(err)
		if failures++; failures >= tries {
			return nil, nil, &NetworkError{URL: redactURL(address), Attempts: failures, Err: bareNetwork(err)}
		}
		if err := c.waitToRetry(ctx, failures, tries, err); err != nil {
			return nil, nil, err
		}
	}
}

// waitToRetry says why the next try comes, of how many, and waits for its turn.
func (c *Client) waitToRetry(ctx context.Context, failures, tries int, why error) error {
	wait := c.backoff(failures)
	c.tell.say(Event{Kind: Waiting, Wait: wait, Why: fmt.Sprintf("%v. Trying again (%d of %d).", bareNetwork(why),
		failures+1, tries)})
	return c.config.Sleep(ctx, wait)
}

func limitNotice(wait time.Duration, path string) Event {
	return Event{Kind: Waiting, Path: path, Wait: wait,
		Why: fmt.Sprintf("The hub limits requests. Waiting %s, as it asks.", wait.Round(time.Second))}
}

func (c *Client) askOnce(ctx context.Context, address string, header http.Header, limit int64) (*http.Response, []byte,
	error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, _, err := c.get(ctx, address, header, nil)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	watch := newStallWatch(c.config.StallTimeout, cancel)
	defer watch.stop()
	body, err := io.ReadAll(watch.reader(io.LimitReader(answer.Body, limit+1)))
	if err != nil {
		return nil, nil, watch.explain(err)
	}
	if int64(len(body)) > limit {
		return nil, nil, &HostileError{"an answer is larger than any honest one"}
	}
	return answer, body, nil
}

func bareNetwork(err error) error {
	var inner *NetworkError
	if errors.As(err, &inner) {
		return inner.Err
	}
	return err
}
