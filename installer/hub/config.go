// Package hub is a client of a Hugging Face-compatible model hub. It lists a revision's files, brings the git objects
// that prove them, and downloads files into the store so that an interruption at any point costs at most one segment a
// connection. It trusts nothing: sizes and hashes come from the lock, and the hash of the file decides.
package hub

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"slipway/fault"
	"slipway/termtext"
)

// DefaultOrigin is the hub that the manifests speak of.
const DefaultOrigin = "https://huggingface.co"

// Config is everything that a client depends on. The zero value of a field is its default.
type Config struct {
	Origin   string   // the manifest's hub; the only place that ever sees the token; DefaultOrigin
	Endpoint string   // where to ask instead of Origin (HF_ENDPOINT); Origin
	Mirrors  []string // asked in order after Endpoint failed or brought wrong bytes
	Token    string   // "" is anonymous
	// TokenFrom is where Token came from, for sentences: "HF_TOKEN", or the file.
	TokenFrom string
	// EndpointFrom and ProxyFrom name the settings that Endpoint and Proxy came from, for sentences. Empty: none is
	// set.
	EndpointFrom string
	ProxyFrom    []string
	// Notify gets retries, waits and a refused token outside downloads, one event at a time; nil: they are dropped.
	Notify Progress
	Proxy  func(*http.Request) (*url.URL, error)
	// Unreadable is a setting that says nothing, nil when there is none. New returns it: going past it would reach the
	// hub by a way that the person closed.
	Unreadable error

	Connections      int           // at most this many requests at once; 8
	SegmentBytes     int64         // unit of resuming; by file size when 0 (segmentBytes)
	LimitBytesPerSec int64         // over all connections; 0 is no limit
	StallTimeout     time.Duration // no byte for this long ends a request; 30 s
	AnswerTimeout    time.Duration // nothing at all for this long ends it; 20 s, and never more than StallTimeout
	Sleep            func(ctx context.Context, d time.Duration) error
	Jitter           func() float64 // in [0,1)
	Now              func() time.Time
	Offline          bool // HF_HUB_OFFLINE: every request is refused
	UserAgent        string
}

// ConfigFromEnv reads what the hub's own tools read: HF_ENDPOINT, HF_TOKEN, HUGGING_FACE_HUB_TOKEN, HF_TOKEN_PATH,
// HF_HOME, HF_HUB_DISABLE_IMPLICIT_TOKEN, HF_HUB_OFFLINE, the proxy variables; and SLIPWAY_MIRRORS, a list of
// endpoints.
func ConfigFromEnv(getenv func(string) string) Config {
	c := Config{Endpoint: getenv("HF_ENDPOINT"), Mirrors: strings.Fields(getenv("SLIPWAY_MIRRORS")),
		Offline: truth(getenv("HF_HUB_OFFLINE"))}
	if c.Endpoint != "" {
		c.EndpointFrom = "HF_ENDPOINT"
	}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		value := getenv(name)
		if c.Unreadable == nil && !proxyAddress(value) {
			c.Unreadable = &ProxyError{Setting: name}
		}
		if value != "" {
			c.ProxyFrom = append(c.ProxyFrom, name)
		}
	}
	proxies := (&httpproxy.Config{
		HTTPProxy:  first(getenv("HTTP_PROXY"), getenv("http_proxy"), getenv("ALL_PROXY"), getenv("all_proxy")),
		HTTPSProxy: first(getenv("HTTPS_PROXY"), getenv("https_proxy"), getenv("ALL_PROXY"), getenv("all_proxy")),
		NoProxy:    first(getenv("NO_PROXY"), getenv("no_proxy")),
	}).ProxyFunc()
	c.Proxy = func(r *http.Request) (*url.URL, error) { return proxies(r.URL) }
	if truth(getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		return c
	}
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if c.Token == "" {
			c.Token, c.TokenFrom = strings.TrimSpace(getenv(name)), name
		}
	}
	if c.Token == "" {
		file := getenv("HF_TOKEN_PATH")
		if file == "" {
			home := getenv("HF_HOME")
			if home == "" {
				home = filepath.Join(first(getenv("XDG_CACHE_HOME"), filepath.Join(getenv("HOME"), ".cache")),
					"huggingface")
			}
			file = filepath.Join(home, "token")
		}
		c.Token, c.TokenFrom = tokenIn(file), "the token file "+file
	}
	return c
}

// ProxyError: a proxy variable holds no address. Its value is unknown, as it may hold a password.
type ProxyError struct{ Setting string }

func (e *ProxyError) Error() string {
	return e.Setting + " is not the address of a proxy. Such an address is http://HOST:PORT, https://HOST:PORT or " +
		"socks5://HOST:PORT"
}

// Fault: see package fault.
func (e *ProxyError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Usage, Step: fault.FixAddress}
}

// proxyAddress reports whether value is empty or the address of a proxy that can be spoken to: net/http would silently
// ignore what it cannot read, and ask any other scheme as if it were http.
func proxyAddress(value string) bool {
	if value == "" {
		return true
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	return err == nil && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) && realHost(u)
}

// realHost reports whether an address names a host, and its port, if it names one, is a port.
func realHost(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return u.Hostname() != "" && !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.Atoi(port)
	return u.Hostname() != "" && err == nil && n >= 1 && n <= 65535
}

// maxTokenBytes: a token has some 40 bytes.
const maxTokenBytes = 4096

// tokenIn reads a token file, "" when it is no plain file of a token's size: a pipe in its place would never answer.
func tokenIn(file string) string {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxTokenBytes {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTokenBytes))
	if err != nil {
		return ""
	}
	return termtext.Secret(data)
}

func (c Config) withDefaults() Config {
	c.Origin = strings.TrimRight(first(c.Origin, DefaultOrigin), "/")
	c.Endpoint = strings.TrimRight(first(c.Endpoint, c.Origin), "/")
	if c.Connections <= 0 {
		c.Connections = 8
	}
	if c.StallTimeout <= 0 {
		c.StallTimeout = 30 * time.Second
	}
	if c.AnswerTimeout <= 0 {
		c.AnswerTimeout = min(20*time.Second, c.StallTimeout)
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.UserAgent, c.TokenFrom = first(c.UserAgent, "slipway"), first(c.TokenFrom, "HF_TOKEN")
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func truth(v string) bool {
	switch strings.ToLower(v) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
