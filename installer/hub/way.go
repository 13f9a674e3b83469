package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
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
	NoNames     Obstacle = "no name server" // that looks a host up
	NoNetwork   Obstacle = "no network"
	NoRoute     Obstacle = "no route" // to this host

	UnknownProxy   Obstacle = "unknown proxy"
	ClosedProxy    Obstacle = "closed proxy"    // nothing listens there
	BadCertificate Obstacle = "bad certificate" // of another host, or out of its time
)

// passing reports whether an obstacle may go away by itself in the middle of a download.
func (o Obstacle) passing() bool {
	return o == UnknownHost || o == NoNames || o == NoNetwork || o == NoRoute || o == WebPage
}

// WayError: the hub cannot be reached until a person changes something. It is not tried again, unless it comes in the
// middle of a download and may pass.
type WayError struct {
	Host  string // that was asked; of the proxy where that is at fault
	Kind  Obstacle
	Why   string // of a bad certificate
	Proxy bool   // Host is a proxy
	// Settings are the environment's variables that name Host, of those that are set.
	Settings []string
}

func (e *WayError) Error() string {
	host := "the host " + e.Host
	if e.Proxy {
		host = "the proxy " + e.Host
	}
	switch e.Kind {
	case WebPage:
		return e.Host + " answered with a web page: sign in to the network or set HTTPS_PROXY"
	case UnknownCA:
		return "the certificate of " + e.Host + " is signed by an authority that this machine does not know. Where " +
			"that is right, add the authority: to the Keychain on macOS, elsewhere in a file that SSL_CERT_FILE names"
	case ProxyLogin:
		return fmt.Sprintf("%s wants a user and a password: %s=http://USER:PASSWORD@HOST:PORT", host,
			first(append(e.Settings, "HTTPS_PROXY")...))
	case UnknownHost, UnknownProxy:
		return host + " was not found: look at this machine's network" + andAt(e.Settings)
	case NoNames:
		return "no name server says where " + host + " is, so this machine seems to have no network: connect it, or " +
			"look at its network settings" + andAt(e.Settings)
	case NoNetwork:
		return host + " cannot be reached from this machine, which seems to have no network: connect it, or look at " +
			"its network settings" + andAt(e.Settings)
	case NoRoute:
		return "no network of this machine leads to " + host + ": look at its network settings" + andAt(e.Settings)
	case ClosedProxy:
		return "nothing answers at " + host + lookAt(e.Settings)
	case BadCertificate:
		return "the certificate of " + e.Host + " is not valid (" + e.Why +
			"): look at this machine's clock, and whether the network wants you to sign in"
	}
	return fmt.Sprintf("%s: %s", e.Host, string(e.Kind))
}

// andAt continues a sentence by the settings to look at.
func andAt(settings []string) string {
	if len(settings) == 0 {
		return ""
	}
	return ", and at " + strings.Join(settings, " and ")
}

// lookAt ends a sentence by the settings to look at.
func lookAt(settings []string) string {
	if len(settings) == 0 {
		return ""
	}
	return ": look at " + strings.Join(settings, " and ")
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
	if err == nil || at == nil {
		return nil
	}
	proxied := c.proxy(at) != nil
	way := &WayError{Host: c.proxyOf(at), Proxy: proxied, Settings: c.settingsOf(at)}
	switch {
	case errors.As(err, &name):
		return &WayError{Host: at.Host, Kind: BadCertificate, Why: plain(name.Error())}
	case errors.As(err, &invalid):
		return &WayError{Host: at.Host, Kind: BadCertificate, Why: plain(invalid.Error())}
	case errors.As(err, &authority), errors.As(err, &verification):
		return &WayError{Host: at.Host, Kind: UnknownCA}
	case errors.Is(err, syscall.ECONNREFUSED) && proxied:
		way.Kind = ClosedProxy
	case errors.As(err, &dns):
		way.Host, way.Kind = dns.Name, NoNames
		if dns.IsNotFound {
			way.Kind = map[bool]Obstacle{true: UnknownProxy, false: UnknownHost}[proxied]
		}
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ENETDOWN):
		way.Kind = NoNetwork
	case errors.Is(err, syscall.EHOSTUNREACH):
		way.Kind = NoRoute
	case strings.Contains(err.Error(), http.StatusText(http.StatusProxyAuthRequired)): // net/http's error has no type
		way.Kind = ProxyLogin
	default:
		return nil
	}
	return way
}

// settingsOf are the variables that say whom a request to an address goes to, of those that are set.
func (c *Client) settingsOf(at *url.URL) []string {
	endpoint, err := url.Parse(c.endpoints[0])
	switch {
	case c.proxy(at) != nil:
		return c.config.ProxyFrom
	case c.config.EndpointFrom != "" && err == nil && endpoint.Host == at.Host:
		return []string{c.config.EndpointFrom}
	}
	return nil
}

// UnansweredError: a host did not answer at all, neither with a connection nor with a byte.
type UnansweredError struct {
	Who      string // "HOST", or "the proxy HOST"
	Within   time.Duration
	Settings []string // that name it, of those that are set
}

func (e *UnansweredError) Error() string { return e.what() + lookAt(e.Settings) }

func (e *UnansweredError) what() string {
	if e.Within == 0 {
		return "nothing answers at " + e.Who
	}
	return fmt.Sprintf("%s gave no answer within %s", e.Who, e.Within)
}

// noAnswer words why a request failed before an answer came.
func (c *Client) noAnswer(err error, at *url.URL) error {
	who := at.Host
	if proxy := c.proxy(at); proxy != nil {
		who = "the proxy " + proxy.Host
	}
	unanswered := &UnansweredError{Who: who, Settings: c.settingsOf(at)}
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		unanswered.Within = c.config.AnswerTimeout
		if errors.As(err, &op) && op.Op == "dial" {
			unanswered.Within = min(dialTimeout, c.config.AnswerTimeout)
		}
		return unanswered
	case errors.Is(err, syscall.ECONNREFUSED):
		return unanswered
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%s closed the connection before it answered", who)
	}
	return err
}

// dialTimeout bounds the wait for a connection.
const dialTimeout = 10 * time.Second

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
	dialer := &net.Dialer{Timeout: min(dialTimeout, limit), KeepAlive: 30 * time.Second}
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
		return &WayError{Host: c.proxyOf(at), Kind: ProxyLogin, Proxy: true, Settings: c.config.ProxyFrom}
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
