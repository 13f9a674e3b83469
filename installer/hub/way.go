package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"slipway/fault"
)

// Obstacle is something on the way to the hub that another try does not remove.
type Obstacle string

// The obstacles.
const (
	WebPage     Obstacle = "a web page"          // a sign-in page of the network, or of a proxy
	UnknownCA   Obstacle = "unknown authority"   // the certificate's authority is not known here
	ProxyLogin  Obstacle = "proxy wants a login" // 407
	UnknownHost Obstacle = "unknown host"

	UnknownProxy   Obstacle = "unknown proxy"
	ClosedProxy    Obstacle = "closed proxy"    // nothing listens there
	BadCertificate Obstacle = "bad certificate" // of another host, or out of its time
)

// WayError: the hub cannot be reached until a person changes something. It is never tried again.
type WayError struct {
	Host string // that was asked; of the proxy where it wants a login
	Kind Obstacle
	Why  string // of a bad certificate
}

func (e *WayError) Error() string {
	switch e.Kind {
	case WebPage:
		return e.Host + " answered with a web page: sign in to the network or set HTTPS_PROXY"
	case UnknownCA:
		return "the certificate of " + e.Host + " is signed by an authority that this machine does not know. Where " +
			"that is right, add the authority: to the Keychain on macOS, elsewhere in a file that SSL_CERT_FILE names"
	case ProxyLogin:
		return "the proxy " + e.Host + " wants a user and a password: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"
	case UnknownHost:
		return "the host " + e.Host + " is not known: look at the network, and at HF_ENDPOINT"
	case UnknownProxy:
		return "the proxy " + e.Host + " is not known: look at the network, and at HTTPS_PROXY and ALL_PROXY"
	case ClosedProxy:
		return "nothing answers at the proxy " + e.Host + ": look at HTTPS_PROXY and ALL_PROXY"
	case BadCertificate:
		return "the certificate of " + e.Host + " does not hold (" + e.Why +
			"): look at this machine's clock, and whether the network wants you to sign in"
	}
	return fmt.Sprintf("%s: %s", e.Host, string(e.Kind))
}

// Fault: see package fault.
func (e *WayError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Network, Step: fault.Resume}
}

// obstacle is the *WayError behind a failed request to an address; nil where another try may help.
func (c *Client) obstacle(err error, at *url.URL) error {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var dns *net.DNSError
	switch {
	case err == nil || at == nil:
		return nil
	case errors.As(err, &name):
		return &WayError{Host: at.Host, Kind: BadCertificate, Why: plain(name.Error())}
	case errors.As(err, &invalid):
		return &WayError{Host: at.Host, Kind: BadCertificate, Why: plain(invalid.Error())}
	case errors.As(err, &authority), errors.As(err, &verification):
		return &WayError{Host: at.Host, Kind: UnknownCA}
	case errors.Is(err, syscall.ECONNREFUSED) && c.proxy(at) != nil:
		return &WayError{Host: c.proxyOf(at), Kind: ClosedProxy}
	case errors.As(err, &dns) && dns.IsNotFound && c.proxy(at) != nil:
		return &WayError{Host: dns.Name, Kind: UnknownProxy}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &WayError{Host: dns.Name, Kind: UnknownHost}
	case strings.Contains(err.Error(), http.StatusText(http.StatusProxyAuthRequired)): // net/http's error has no type
		return &WayError{Host: c.proxyOf(at), Kind: ProxyLogin}
	}
	return nil
}

// noAnswer names who gave no answer in time, where that is why a request failed.
func (c *Client) noAnswer(err error, at *url.URL) error {
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		return err
	}
	if proxy := c.proxy(at); proxy != nil {
		return fmt.Errorf("%w (the proxy %s gave no answer within %s: look at HTTPS_PROXY and ALL_PROXY)", ErrStalled,
			proxy.Host, c.config.StallTimeout)
	}
	return fmt.Errorf("%w (no answer within %s)", ErrStalled, c.config.StallTimeout)
}

// firstByte is a connection that gives its first byte in time or fails: net/http waits a minute for a proxy that does
// not answer to CONNECT.
type firstByte struct {
	net.Conn
	came bool
}

func (c *firstByte) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.came {
		c.came = true
		c.SetReadDeadline(time.Time{})
	}
	return n, err
}

// dial connects, and bounds the wait for the first byte.
func dial(limit time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &firstByte{Conn: conn}, conn.SetReadDeadline(time.Now().Add(limit))
	}
}

// obstacleIn is the *WayError that an answer is; nil where it is none.
func (c *Client) obstacleIn(answer *http.Response) error {
	at := answer.Request.URL
	switch status := answer.StatusCode; {
	case status == http.StatusProxyAuthRequired:
		return &WayError{Host: c.proxyOf(at), Kind: ProxyLogin}
	case status == http.StatusNetworkAuthenticationRequired, status == http.StatusOK && isPage(answer):
		return &WayError{Host: at.Host, Kind: WebPage}
	}
	return nil
}

// proxyOf names the proxy for an address, without its user.
func (c *Client) proxyOf(at *url.URL) string {
	if proxy := c.proxy(at); proxy != nil {
		return proxy.Host
	}
	return at.Host
}

// proxy is the one that requests to an address go through; nil: none.
func (c *Client) proxy(at *url.URL) *url.URL {
	if c.config.Proxy == nil {
		return nil
	}
	proxy, err := c.config.Proxy(&http.Request{URL: at})
	if err != nil {
		return nil
	}
	return proxy
}
