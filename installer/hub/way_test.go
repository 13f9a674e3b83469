package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	secure := httptest.NewUnstartedServer(page.Config.Handler)
	secure.Config.ErrorLog = nil
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
