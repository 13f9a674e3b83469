package hub

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"slipway/fault"
)

// maxRedirects: the hub uses one, a renamed repository two, a mirror in front three.
const maxRedirects = 6

// RedirectError: the hub sent us somewhere we do not go.
type RedirectError struct{ From, To, Why string }

func (e *RedirectError) Error() string {
	return "redirect from " + e.From + " to " + e.To + " refused: " + e.Why
}

// Fault: see package fault.
func (e *RedirectError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.LeaveRedirect}
}

// follow sends the request and goes after redirects. net/http would keep Authorization when only the port changes; here
// the token is set again for each hop, and only where it belongs. A redirect from https to http is refused.
func (c *Client) follow(ctx context.Context, method, address string, header http.Header,
	adjust func(*http.Request)) (*http.Response, []*http.Response, error) {
	var chain []*http.Response
	at, err := url.Parse(address)
	if err != nil {
		return nil, nil, &NetworkError{URL: redactURL(address), Err: errors.New("the address does not parse")}
	}
	if c.config.Offline {
		return nil, nil, &NetworkError{URL: redactURL(address), Err: ErrOffline}
	}
	for {
		request, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
		if err != nil {
			return nil, chain, &NetworkError{URL: redactURL(at.String()), Err: errors.New("the address does not parse")}
		}
		for name, values := range header {
			request.Header[name] = values
		}
		request.Header.Set("Accept-Encoding", "identity")
		request.Header.Set("User-Agent", c.config.UserAgent)
		c.authorize(request)
		if adjust != nil {
			adjust(request)
		}
		answer, err := c.http.Do(request)
		if err != nil {
			if way := c.obstacle(err, at); way != nil && ctx.Err() == nil {
				return nil, chain, way
			}
			if err = bare(err); ctx.Err() == nil {
				err = c.noAnswer(err, at)
			}
			return nil, chain, &NetworkError{URL: redactURL(at.String()), Err: err}
		}
		location := answer.Header.Get("Location")
		if !isRedirect(answer.StatusCode) || location == "" {
			return answer, chain, nil
		}
		answer.Body.Close()
		chain = append(chain, answer)
		next, err := at.Parse(location)
		refuse := func(why string) error {
			to := "an unreadable address"
			if next != nil {
				to = redactURL(next.String())
			}
			return &RedirectError{redactURL(at.String()), to, why}
		}
		switch {
		case err != nil:
			return nil, chain, refuse("the address does not parse")
		case next.Scheme != "http" && next.Scheme != "https":
			return nil, chain, refuse("it is neither http nor https")
		case at.Scheme == "https" && next.Scheme == "http":
			return nil, chain, refuse("it leaves https")
		case next.User != nil:
			return nil, chain, refuse("it carries a user name")
		case len(chain) > maxRedirects:
			return nil, chain, refuse("there were too many")
		}
		at = next
	}
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// sameOrigin: scheme, host and port are equal, default ports spelled out.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
