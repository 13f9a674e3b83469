package hub

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

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
)

// WayError: the hub cannot be reached until a person changes something. It is never tried again.
type WayError struct {
	Host string // that was asked; of the proxy where it wants a login
	Kind Obstacle
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
	var dns *net.DNSError
	switch {
	case err == nil || at == nil:
		return nil
	case errors.As(err, &authority), errors.As(err, &verification):
		return &WayError{at.Host, UnknownCA}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &WayError{dns.Name, UnknownHost}
	case strings.Contains(err.Error(), http.StatusText(http.StatusProxyAuthRequired)): // net/http's error has no type
		return &WayError{c.proxyOf(at), ProxyLogin}
	}
	return nil
}

// obstacleIn is the *WayError that an answer is; nil where it is none.
func (c *Client) obstacleIn(answer *http.Response) error {
	at := answer.Request.URL
	switch status := answer.StatusCode; {
	case status == http.StatusProxyAuthRequired:
		return &WayError{c.proxyOf(at), ProxyLogin}
	case status == http.StatusNetworkAuthenticationRequired, status == http.StatusOK && isPage(answer):
		return &WayError{at.Host, WebPage}
	}
	return nil
}

// proxyOf names the proxy for an address, without its user.
func (c *Client) proxyOf(at *url.URL) string {
	if c.config.Proxy != nil {
		if proxy, err := c.config.Proxy(&http.Request{URL: at}); err == nil && proxy != nil {
			return proxy.Host
		}
	}
	return at.Host
}
