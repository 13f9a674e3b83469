package hub

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slipway/manifests"
	testhub "slipway/test/hub"
)

// silent is an address that takes connections and never answers, and how many it took.
func silent(t *testing.T) (address string, taken *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken = &atomic.Int32{}
	var open []net.Conn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			taken.Add(1)
			open = append(open, conn)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-ended
		for _, conn := range open {
			conn.Close()
		}
	})
	return listener.Addr().String(), taken
}

// An address with a user is refused by its name, with what is wrong in it and without its password.
func TestAddressWithAUserIsShownWithoutThePassword(t *testing.T) {
	_, err := New(Config{Endpoint: "https://me:secret@hub.example"})
	var address *AddressError
	if !errors.As(err, &address) || address.Address != "https://…@hub.example" {
		t.Errorf("%v", err)
	}
}

// A host that gives no answer is asked a few times over both sides together, and each sentence counts the same tries.
func TestHostWithoutAnAnswerIsAskedAFewTimesAndCountedOnce(t *testing.T) {
	quiet, taken := silent(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, row := range map[string]struct {
		endpoint string
		proxy    func(*http.Request) (*url.URL, error)
		says     string
	}{
		"silent":          {"http://" + quiet, nil, quiet + " gave no answer within 30ms (tried 3 times): look at HF_ENDPOINT"},
		"silent with TLS": {"https://" + quiet, nil, quiet + " gave no answer within 30ms (tried 3 times): look at HF_ENDPOINT"},
		"silent proxy": {"https://hub.invalid", http.ProxyURL(&url.URL{Scheme: "http", Host: quiet}),
			"the proxy " + quiet + " gave no answer within 30ms (tried 3 times): look at HTTPS_PROXY"},
		"closed": {gone.URL, nil, "nothing answers at " + strings.TrimPrefix(gone.URL, "http://") +
			" (tried 3 times): look at HF_ENDPOINT"},
	} {
		taken.Store(0)
		var said []string
		c, err := New(Config{Endpoint: row.endpoint, EndpointFrom: "HF_ENDPOINT", ProxyFrom: []string{"HTTPS_PROXY"},
			Proxy: row.proxy, AnswerTimeout: 30 * time.Millisecond,
			Sleep:  func(context.Context, time.Duration) error { return nil },
			Notify: func(e Event) { said = append(said, e.Why) }})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		revision := manifests.Revision(strings.Repeat("1", 40))
		_, err = c.Pack(t.Context(), "a/b", revision)
		if !c.Silent(err) {
			t.Fatalf("%s: %v", name, err)
		}
		err = c.Reach(t.Context(), "a/b", revision, err)
		if err == nil || err.Error() != row.says {
			t.Errorf("%s: %v\nwant %s", name, err, row.says)
		}
		if len(said) != 2 || !strings.HasSuffix(said[0], "Trying again (2 of 3).") ||
			!strings.HasSuffix(said[1], "Trying again (3 of 3).") {
			t.Errorf("%s: %q", name, said)
		}
		for name != "closed" && taken.Load() < 3 { // the last is taken a moment after it was given up
			time.Sleep(time.Millisecond)
		}
		if n := taken.Load(); n != 3 && name != "closed" {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
}

// A download from a host that does not answer is over after the same few tries, and connections that fail together say
// it once.
func TestDownloadFromAHostWithoutAnAnswerEndsAfterAFewTries(t *testing.T) {
	server, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo, err := server.Add("org/model", testhub.File{Path: "a.safetensors", Content: testhub.Pattern(1, 60<<20),
		LFS: true}, testhub.File{Path: "b.safetensors", Content: testhub.Pattern(2, 60<<20), LFS: true})
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	for _, skip := range []bool{false, true} { // the list is asked for first, and not
		home, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer home.Close()
		c, _ := counted(t, server.URL, nil)
		said := map[string]int{}
		err = c.Download(t.Context(), Request{Home: home, Lock: repo.Lock(), SkipUpstream: skip}, func(e Event) {
			if e.Why != "" {
				said[e.Why]++
			}
		})
		if err == nil || !strings.Contains(err.Error(), "(tried 3 times)") || len(said) != 2 {
			t.Errorf("%v: %v", said, err)
		}
		for what, times := range said {
			if times != 1 {
				t.Errorf("said %d times: %s", times, what)
			}
		}
	}
}

// The tries of a host that does not answer at all take about a minute: what is measured is the sum of the limits.
func TestTriesOfASilentHostAreBounded(t *testing.T) {
	c, err := New(Config{Jitter: func() float64 { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	longest := fewTries * c.config.AnswerTimeout
	for n := 1; n < fewTries; n++ {
		longest += c.backoff(n)
	}
	if longest > 65*time.Second {
		t.Errorf("a silent host is waited for as long as %s", longest)
	}
}

// Without a network no other try helps, and a person reads no words of the system.
func TestMissingNetworkIsSaidInPlainWordsAtOnce(t *testing.T) {
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
	}}
	t.Cleanup(func() { net.DefaultResolver = before })
	c, waits := counted(t, "https://hub.example", nil)
	revision := manifests.Revision(strings.Repeat("1", 40))
	_, packErr := c.Pack(t.Context(), "a/b", revision)
	_, listErr := c.List(t.Context(), "a/b", revision)
	for side, err := range map[string]error{"git": packErr, "api": listErr} {
		var way *WayError
		if !errors.As(err, &way) || way.Kind != NoNames || !strings.Contains(err.Error(), "seems to have no network") ||
			strings.Contains(err.Error(), "dial") || strings.Contains(err.Error(), "lookup") {
			t.Errorf("%s: %v", side, err)
		}
	}
	if n := waits.Load(); n != 0 {
		t.Errorf("tried again %d times", n)
	}
	at := &url.URL{Scheme: "https", Host: "hub.example"}
	for why, kind := range map[syscall.Errno]Obstacle{syscall.ENETUNREACH: NoNetwork, syscall.EHOSTUNREACH: NoRoute} {
		var way *WayError
		if !errors.As(c.obstacle(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", why)}, at), &way) ||
			way.Kind != kind || !strings.Contains(way.Error(), "the host hub.example") {
			t.Errorf("%v: %v", why, way)
		}
	}
}

// A sentence tells a person to look at a setting only where it is set.
func TestOnlySettingsThatAreSetAreNamed(t *testing.T) {
	noSuchName(t)
	for _, set := range []map[string]string{{}, {"HF_ENDPOINT": "https://hub.example"},
		{"https_proxy": "http://proxy.example:1"}, {"ALL_PROXY": "http://proxy.example:1",
			"HF_ENDPOINT": "https://hub.example"}} {
		c, err := New(ConfigFromEnv(func(name string) string { return set[name] }))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.List(t.Context(), "a/b", manifests.Revision(strings.Repeat("1", 40)))
		c.Close()
		var way *WayError
		if !errors.As(err, &way) {
			t.Fatalf("%v: %v", set, err)
		}
		for _, name := range []string{"HF_ENDPOINT", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
			named := set[name] != "" && (name != "HF_ENDPOINT" || set["ALL_PROXY"] == "") // a proxy is at fault itself
			if strings.Contains(err.Error(), name) != named {
				t.Errorf("%v: %v", set, err)
			}
		}
	}
}

func TestProxySettingIsAnAddressThatCanBeSpokenTo(t *testing.T) {
	for value, good := range map[string]bool{"": true, "proxy.example:3128": true, "http://proxy.example": true,
		"socks5h://127.0.0.1:1080": true, "https://user:pw@proxy.example:443": true, "nonsense://proxy.example": false,
		"nonsense://": false, "ftp://proxy.example": false, "http://": false, "http://:3128": false,
		"http://proxy.example:99999": false, "%zz": false} {
		config := ConfigFromEnv(func(name string) string { return map[string]string{"HTTPS_PROXY": value}[name] })
		if (config.Unreadable == nil) != good {
			t.Errorf("HTTPS_PROXY=%s: %v", value, config.Unreadable)
		}
		if set := slices.Contains(config.ProxyFrom, "HTTPS_PROXY"); set != (value != "") {
			t.Errorf("HTTPS_PROXY=%s is set: %v", value, set)
		}
	}
}
