package hub

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"slipway/fault"
	"slipway/manifests"
)

// Client talks to one hub and its mirrors. It is safe for several goroutines.
type Client struct {
	config    Config
	endpoints []string // Endpoint, then the mirrors
	http      *http.Client
	anonymous atomic.Bool // the token was refused where no token is needed
	gate      gate
	pace      pace
	tell      teller // outside a download, and of what concerns no single file

	firstRefusal atomic.Pointer[AccessError]
}

// AddressError: a setting names something that is no address of a hub.
type AddressError struct{ Setting, Address string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("%s is %q, which is not the address of a hub. Such an address is https://HOST or http://HOST, "+
		"without a user name or a question mark", e.Setting, e.Address)
}

// Fault: see package fault.
func (e *AddressError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Usage, Step: fault.FixAddress}
}

// New makes a client. An endpoint that is no http or https URL is an *AddressError, a token that no header can carry an
// *AccessError, and a setting that says nothing its own error.
func New(config Config) (*Client, error) {
	if config.Unreadable != nil {
		return nil, config.Unreadable
	}
	c := &Client{config: config.withDefaults()}
	c.tell.tell = config.Notify
	if strings.ContainsFunc(c.config.Token, func(r rune) bool { return r <= 0x20 || r >= 0x7f }) {
		return nil, &AccessError{Kind: TokenShape, Subject: c.config.TokenFrom, Page: c.config.Origin +
			"/settings/tokens"}
	}
	c.endpoints = append([]string{c.config.Endpoint}, c.config.Mirrors...)
	for i, e := range c.endpoints {
		c.endpoints[i] = strings.TrimRight(e, "/")
		if u, err := url.Parse(e); err != nil || !realHost(u) || (u.Scheme != "http" && u.Scheme != "https") ||
			u.User != nil || u.RawQuery != "" {
			shown := redactURL(e)
			if err == nil && u.User != nil { // hidden, and still seen to be there
				shown = strings.Replace(shown, "://", "://…@", 1)
			}
			return nil, &AddressError{map[bool]string{true: "HF_ENDPOINT", false: "SLIPWAY_MIRRORS"}[i == 0], shown}
		}
	}
	c.pace.perSecond = c.config.LimitBytesPerSec
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // HTTP/2 would put every segment on one TCP connection, where one loss stops them all
	transport := &http.Transport{
		Proxy:                  c.config.Proxy,
		DialContext:            dial(c.config.AnswerTimeout),
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  c.config.AnswerTimeout,
		MaxIdleConnsPerHost:    c.config.Connections,
		IdleConnTimeout:        60 * time.Second,
		DisableCompression:     true,
		Protocols:              protocols,
		MaxResponseHeaderBytes: 256 << 10,
		ReadBufferSize:         64 << 10,
	}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &http.Client{Transport: transport, CheckRedirect: noRedirect}
	return c, nil
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// fromOrigin reports whether endpoint is the manifest's own hub.
func (c *Client) fromOrigin(endpoint string) bool { return endpoint == c.config.Origin }

func resolveURL(endpoint, repo string, revision manifests.Revision, file string) string {
	parts := strings.Split(file, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return endpoint + "/" + repo + "/resolve/" + string(revision) + "/" + strings.Join(parts, "/")
}

// get sends one GET and follows redirects by the rules of redirect.go. The answer's status is not judged. The caller
// closes the body. chain holds the answers of the redirects that were passed, bodies closed. adjust, if not nil, sees
// the request of each hop before it is sent: a validator is for one host only.
func (c *Client) get(ctx context.Context, address string, header http.Header,
	adjust func(*http.Request)) (answer *http.Response, chain []*http.Response, err error) {
	return c.follow(ctx, http.MethodGet, address, header, adjust)
}
