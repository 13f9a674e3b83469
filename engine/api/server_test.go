package api_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway/engine/api"
	"slipway/engine/pass"
	"slipway/engine/serve"
)

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if name == "Host" {
			r.Host = value
			return
		}
		r.Header.Set(name, value)
	}
}

func TestWebPagesAreRefused(t *testing.T) {
	s := start(t, setup{})
	own := strings.TrimPrefix(s.URL, "http://")
	_, port, _ := net.SplitHostPort(own)
	tests := []struct {
		name   string
		change func(*http.Request)
		status int
	}{
		{"as it should be", header("Accept", "*/*"), 200},
		{"localhost", header("Host", "localhost:"+port), 200},
		{"IPv6 loopback", header("Host", "[::1]:"+port), 200},
		{"name that an attacker's DNS points here", header("Host", "evil.example:"+port), 403},
		{"name that begins like ours", header("Host", "127.0.0.1.evil.example"), 403},
		{"localhost below another name", header("Host", "localhost.evil.example"), 403},
		{"another machine's address", header("Host", "192.168.1.7"), 403},
		{"own page", header("Origin", s.URL), 200},
		{"other site", header("Origin", "https://evil.example"), 403},
		{"other port of this machine", header("Origin", "http://localhost:3000"), 403},
		{"file or sandbox", header("Origin", "null"), 403},
		{"cross-site fetch without Origin", header("Sec-Fetch-Site", "cross-site"), 403},
		{"same-site fetch", header("Sec-Fetch-Site", "same-site"), 403},
		{"address bar", header("Sec-Fetch-Site", "none"), 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, path := range []string{"/health", "/v1/models", "/metrics"} {
				a := s.get(t, path, test.change)
				if a.status != test.status {
					t.Errorf("GET %s: status %d", path, a.status)
				}
				for name := range a.header {
					if strings.HasPrefix(name, "Access-Control-") {
						t.Errorf("GET %s sends %s", path, name)
					}
				}
			}
			if a := s.post(t, chatPath, chat(thinkingOff), test.change); a.status != test.status {
				t.Errorf("POST: status %d", a.status)
			}
		})
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
		"application/jsonx"} {
		if a := s.post(t, chatPath, chat(""),
			header("Content-Type", kind)); a.status != http.StatusUnsupportedMediaType {
			t.Errorf("Content-Type %q: status %d", kind, a.status)
		}
	}
	if a := s.post(t, chatPath, chat(thinkingOff),
		header("Content-Type", "application/json; charset=utf-8")); a.status != 200 {
		t.Errorf("with a charset: status %d", a.status)
	}
	preflight := func(r *http.Request) {
		r.Method = http.MethodOptions
		r.Header.Set("Access-Control-Request-Method", "POST")
	}
	if a := s.post(t, chatPath, "", preflight); a.status != 405 || a.header.Get("Access-Control-Allow-Origin") != "" ||
		a.header.Get("Allow") != "POST" {
		t.Errorf("preflight: %d, %v", a.status, a.header)
	}
}

func TestKeyIsRequired(t *testing.T) {
	const key = "sk-0123456789abcdef"
	s := start(t, setup{key: api.NewKey(key)})
	tests := []struct {
		name   string
		change func(*http.Request)
		status int
	}{
		{"none", header("Accept", "*/*"), 401},
		{"wrong", header("Authorization", "Bearer "+key+"0"), 401},
		{"a prefix", header("Authorization", "Bearer "+key[:10]), 401},
		{"empty", header("Authorization", "Bearer "), 401},
		{"another scheme", header("Authorization", "Basic "+key), 401},
		{"right", header("Authorization", "Bearer "+key), 200},
		{"right, scheme in small letters", header("Authorization", "bearer "+key), 200},
		{"right, as x-api-key", header("X-Api-Key", key), 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, path := range []string{"/v1/models", "/metrics"} {
				if a := s.get(t, path, test.change); a.status != test.status || strings.Contains(string(a.body), key) {
					t.Errorf("GET %s: status %d: %s", path, a.status, a.body)
				}
			}
			if a := s.post(t, chatPath, chat(thinkingOff), test.change); a.status != test.status {
				t.Errorf("POST: status %d", a.status)
			}
			if a := s.get(t, "/health", test.change); a.status != 200 {
				t.Errorf("health from loopback: status %d", a.status)
			}
		})
	}
	if strings.Contains(s.log.String(), key[:10]) {
		t.Error("the log holds the key")
	}
}

func TestHealthAnswersWhileTheEngineIsBusy(t *testing.T) {
	open := make(chan struct{})
	s := start(t, setup{queue: 5, pass: func([]pass.Segment) error { <-open; return nil }})
	for range 3 {
		s.open(t, context.Background(), chatPath, chat(`,"stream":true`))
	}
	type health struct {
		Product, Version, Started, Model string
		PID                              int
		LaunchID                         string `json:"launch_id"`
		Ready, Busy                      *bool
		Active, Queued                   *int
		Background, Draining             *bool
	}
	h := health{}
	for h.Active == nil || *h.Active < 1 || *h.Active+*h.Queued < 3 {
		h = decode[health](t, s.get(t, "/health").body) // while a pass is held
	}
	if h.Product != "slipway" || h.Version != "9.9" || h.PID != 42 || h.LaunchID != "launch-7" || h.Model != "pocket" ||
		h.Started != "2023-11-14T22:13:20Z" {
		t.Errorf("%+v", h)
	}
	if !*h.Ready || !*h.Busy || *h.Background || *h.Draining {
		t.Errorf("%+v", h)
	}
	s.engine.Drain()
	if h = decode[health](t, s.get(t, "/health").body); *h.Ready || !*h.Draining {
		t.Errorf("draining: %+v", h)
	}
	if a := s.post(t, chatPath, chat("")); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("a draining server answers %d: %s", a.status, a.body)
	}
	close(open)
}

func TestFullQueueSaysWhenToRetry(t *testing.T) {
	open := make(chan struct{})
	s := start(t, setup{queue: 1, pass: func([]pass.Segment) error { <-open; return nil }})
	s.open(t, context.Background(), chatPath, chat(`,"stream":true`))
	for s.engine.Status().Active < 1 {
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		s.open(t, context.Background(), chatPath, chat(`,"stream":true`))
	}
	a := s.post(t, chatPath, chat(`,"stream":true`))
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if a.status != http.StatusTooManyRequests || err != nil || seconds < 1 ||
		decode[reply](t, a.body).Error.Code != "queue_full" {
		t.Errorf("status %d, Retry-After %q: %s", a.status, a.header.Get("Retry-After"), a.body)
	}
	close(open)
	for s.engine.Status().Active+s.engine.Status().Queued > 0 {
		time.Sleep(time.Millisecond)
	}
	s.ask(t, thinkingOff)
}

func TestModelsAreListed(t *testing.T) {
	s := start(t, setup{window: 777})
	list := decode[struct {
		Object string
		Data   []struct {
			ID, Object, Revision string
			OwnedBy              string `json:"owned_by"`
			Window               int    `json:"context_window"`
		}
	}](t, s.get(t, "/v1/models").body)
	if list.Object != "list" || len(list.Data) != 1 || list.Data[0].ID != "pocket" ||
		list.Data[0].OwnedBy != "slipway" || list.Data[0].Window != 777 || len(list.Data[0].Revision) != 40 {
		t.Errorf("%+v", list)
	}
	if a := s.get(t, "/v1/models/pocket"); a.status != 200 || !strings.Contains(string(a.body), `"id":"pocket"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.get(t, "/v1/models/gpt-4"); a.status != 404 || !strings.Contains(string(a.body), "pocket") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.get(t, "/v2/models"); a.status != 404 || decode[reply](t, a.body).Error == nil {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.get(t, chatPath); a.status != 405 {
		t.Errorf("GET of a POST: %d", a.status)
	}
}

func TestMetricsAgreeWithUsage(t *testing.T) {
	s := start(t, setup{})
	want := s.ask(t, thinkingOff).Usage
	s.post(t, chatPath, chat(`,"n":9`))
	page := string(s.get(t, "/metrics").body)
	for line := range strings.Lines(page) {
		name := strings.FieldsFunc(line, func(r rune) bool { return r == '{' || r == ' ' })[0]
		if !strings.HasPrefix(line, "#") && (!strings.Contains(page, "# HELP "+name+" ") ||
			!strings.Contains(page, "# TYPE "+name+" ")) {
			t.Errorf("%s has no help or no type", name)
		}
	}
	value := func(name string) string {
		found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("%s is missing in %s", name, page)
		}
		return found[1]
	}
	for name, v := range map[string]int{
		"slipway_prompt_tokens_total": want.Prompt, "slipway_computed_tokens_total": want.Slipway.Computed,
		"slipway_cached_tokens_total":     want.Details.Cached,
		"slipway_completion_tokens_total": want.Completion, `slipway_requests_total{outcome="stop"}`: 1,
		`slipway_requests_total{outcome="cancelled"}`: 0,
		`slipway_refused_total{code="invalid_value"}`: 1, "slipway_active_requests": 0,
	} {
		if value(name) != strconv.Itoa(v) {
			t.Errorf("%s is %s, want %d", name, value(name), v)
		}
	}
	if !strings.Contains(page, "# HELP slipway_prompt_tokens_total ") {
		t.Error("no help texts")
	}
}

// panicking is a handler with a bug of ours.
type panicking struct {
	api.Engine
	armed *atomic.Bool
}

func (p panicking) Submit(ctx context.Context, r serve.Request) (*serve.Reply, error) {
	if p.armed.Load() {
		panic("a bug")
	}
	return p.Engine.Submit(ctx, r)
}

func TestBugInAHandlerIsLogged(t *testing.T) {
	var armed atomic.Bool
	armed.Store(true)
	s := start(t, setup{wrap: func(e api.Engine) api.Engine { return panicking{e, &armed} }})
	a := s.post(t, chatPath, chat(""))
	if a.status != 500 || decode[reply](t, a.body).Error == nil || strings.Contains(string(a.body), "a bug") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if log := s.log.String(); !strings.Contains(log, "a bug") || !strings.Contains(log, "Submit") {
		t.Errorf("the log does not show the bug: %s", log)
	}
	armed.Store(false)
	s.ask(t, thinkingOff)
}

func TestLoadingServerIsNotReady(t *testing.T) {
	handler := api.New(api.Options{ModelID: "pocket", Version: "9.9", BodyBytes: 100, KeepAlive: time.Hour,
		Now: time.Now, Log: slog.New(slog.DiscardHandler)}).Handler()
	s := &server{Server: httptest.NewServer(handler)}
	defer s.Close()
	if h := decode[struct{ Ready, Draining *bool }](t, s.get(t, "/health").body); h.Ready == nil || *h.Ready ||
		*h.Draining {
		t.Errorf("%+v", h)
	}
	for _, a := range []answer{s.post(t, chatPath, chat("")), s.get(t, "/v1/models"), s.get(t, "/metrics")} {
		if a.status != 503 || a.header.Get("Retry-After") == "" || decode[reply](t, a.body).Error.Code != "loading" {
			t.Errorf("status %d: %s", a.status, a.body)
		}
	}
}
