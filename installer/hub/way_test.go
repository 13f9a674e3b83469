package hub

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"slipway/manifests"
)

// counted is a client for one endpoint that never waits, and counts its waits.
func counted(t *testing.T, endpoint string, proxy func(*http.Request) (*url.URL, error)) (*Client, *atomic.Int32) {
	t.Helper()
	waits := &atomic.Int32{}
	c, err := New(Config{Endpoint: endpoint, Proxy: proxy, Sleep: func(context.Context, time.Duration) error {
		waits.Add(1)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, waits
}

// What another try does not mend is said at once, with its host, on the git side and on that of the API.
func TestObstaclesOnTheWayAreNamedAtOnce(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<html>sign in</html>"))
	}))
	defer page.Close()
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, page.URL+"/login", http.StatusFound)
	}))
	defer away.Close()
	elsewhere := httptest.NewUnstartedServer(page.Config.Handler)
	elsewhere.TLS, elsewhere.Config.ErrorLog = expired(t), log.New(io.Discard, "", 0)
	elsewhere.StartTLS()
	defer elsewhere.Close()
	noSuchName(t)
	secure := httptest.NewUnstartedServer(page.Config.Handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.TLS = &tls.Config{}
	secure.StartTLS()
	defer secure.Close()
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer login.Close()
	at, err := url.Parse(login.URL)
	if err != nil {
		t.Fatal(err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	closed := strings.TrimPrefix(gone.URL, "http://")
	revision := strings.Repeat("1", 40)
	for name, row := range map[string]struct {
		endpoint string
		proxy    func(*http.Request) (*url.URL, error)
		kind     Obstacle
		host     string
	}{
		"a web page":          {page.URL, nil, WebPage, strings.TrimPrefix(page.URL, "http://")},
		"a way to a page":     {away.URL, nil, WebPage, ""},
		"unknown authority":   {secure.URL, nil, UnknownCA, strings.TrimPrefix(secure.URL, "https://")},
		"proxy wants a login": {"http://hub.invalid", http.ProxyURL(at), ProxyLogin, at.Host},
		"CONNECT refused":     {"https://hub.invalid", http.ProxyURL(at), ProxyLogin, at.Host},
		"unknown host":        {"https://hub.example", nil, UnknownHost, "hub.example"},
		"unknown proxy": {"https://hub.example", http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example:3128"}),
			UnknownProxy, "proxy.example"},
		"closed proxy": {"https://hub.example", http.ProxyURL(&url.URL{Scheme: "http", Host: closed}), ClosedProxy,
			closed},
		"closed SOCKS proxy": {"https://hub.example", http.ProxyURL(&url.URL{Scheme: "socks5", Host: closed}),
			ClosedProxy, closed},
		"certificate of yesterday": {elsewhere.URL, nil, BadCertificate, strings.TrimPrefix(elsewhere.URL, "https://")},
	} {
		c, waits := counted(t, row.endpoint, row.proxy)
		_, packErr := c.Pack(t.Context(), "a/b", manifests.Revision(revision))
		_, listErr := c.List(t.Context(), "a/b", manifests.Revision(revision))
		for side, err := range map[string]error{"git": packErr, "api": listErr} {
			var way *WayError
			if !errors.As(err, &way) || way.Kind != row.kind || row.host != "" && way.Host != row.host {
				t.Errorf("%s, %s: %v", name, side, err)
			}
		}
		if n := waits.Load(); n != 0 {
			t.Errorf("%s: tried again %d times", name, n)
		}
	}
}

// A mirror without a git side says so with one 404, which is not asked for five times.
func TestMissingGitSideIsAskedForOnce(t *testing.T) {
	var asked atomic.Int32
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	}))
	defer hub.Close()
	c, _ := counted(t, hub.URL, nil)
	_, err := c.Pack(t.Context(), "a/b", manifests.Revision(strings.Repeat("1", 40)))
	if !c.Unreachable(err) || asked.Load() != 1 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
}

// ALL_PROXY is used where no other variable names a proxy, and loopback never goes through one.
func TestAllProxyIsUsedAndLoopbackIsNot(t *testing.T) {
	for _, name := range []string{"ALL_PROXY", "all_proxy", "HTTPS_PROXY"} {
		config := ConfigFromEnv(func(asked string) string {
			return map[string]string{name: "http://proxy.invalid:3128", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}[asked]
		})
		for address, want := range map[string]string{"https://huggingface.co/x": "proxy.invalid:3128",
			"https://127.0.0.1:1/x": "", "https://localhost:1/x": "", "https://[::1]:1/x": ""} {
			at, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			proxy, err := config.Proxy(&http.Request{URL: at})
			if got := ""; err != nil || proxy != nil && proxy.Host != want || proxy == nil && got != want {
				t.Errorf("%s, %s: %v %v", name, address, proxy, err)
			}
		}
	}
	config := ConfigFromEnv(func(asked string) string { return map[string]string{"all_proxy": "%zz"}[asked] })
	var unreadable *ProxyError
	if !errors.As(config.Unreadable, &unreadable) {
		t.Errorf("an ALL_PROXY that is no address is taken: %v", config.Unreadable)
	}
}

// A proxy that takes the connection and never answers to CONNECT is named, on both sides.
func TestProxyThatStallsAtConnectIsNamed(t *testing.T) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			defer conn.Close() // at the end: a connection that is closed is no stall
		}
	}()
	for _, scheme := range []string{"http", "socks5"} {
		c, err := New(Config{Endpoint: "https://hub.invalid", StallTimeout: 50 * time.Millisecond,
			Proxy: http.ProxyURL(&url.URL{Scheme: scheme, Host: proxy.Addr().String()}),
			Sleep: func(context.Context, time.Duration) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, packErr := c.Pack(t.Context(), "a/b", manifests.Revision(strings.Repeat("1", 40)))
		_, listErr := c.List(t.Context(), "a/b", manifests.Revision(strings.Repeat("1", 40)))
		for side, err := range map[string]error{"git": packErr, "api": listErr} {
			if err == nil || !strings.Contains(err.Error(), "the proxy "+proxy.Addr().String()+" gave no answer") {
				t.Errorf("%s, %s: %v", scheme, side, err)
			}
		}
	}
}

// noSuchName makes every name one that nobody knows, for this test.
func noSuchName(t *testing.T) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil {
				continue
			}
			m.Response, m.RCode, m.Additionals = true, dnsmessage.RCodeNameError, nil
			if answer, err := m.Pack(); err == nil {
				server.WriteTo(answer, from)
			}
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = before; server.Close() })
}

// expired is the configuration of a server whose certificate is out of its time.
func expired(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	what := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, what, what, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
}
