package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway/engine/api"
	"slipway/engine/pass"
)

const (
	requestsPath = "/slipway/requests"
	eventsPath   = "/slipway/events"
	reloadPath   = "/slipway/reload"
	draftPath    = "/slipway/draft"
)

// watched is what the tests read of a snapshot.
type watched struct {
	Schema int `json:"schema_version"`
	Server struct {
		Model          string
		Ready          bool
		Active, Queued int
	}
	Cache    json.RawMessage
	Requests []watchedRequest
}

type watchedRequest struct {
	ID       string
	Phase    string
	Prompt   int `json:"prompt_tokens"`
	Cached   int `json:"cached_tokens"`
	Computed int `json:"computed_tokens"`
	Prefill  struct {
		Done int `json:"done_tokens"`
		Of   int `json:"of_tokens"`
	}
	Completion   int      `json:"completion_tokens"`
	FinishReason *string  `json:"finish_reason"`
	FirstTokenMs *float64 `json:"first_token_ms"`
	Rate         *float64 `json:"decode_tokens_per_s"`
}

func (s *server) watch(t *testing.T) watched {
	t.Helper()
	a := s.get(t, requestsPath)
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	w := decode[watched](t, a.body)
	for _, r := range w.Requests {
		if r.Prompt != r.Cached+r.Computed || r.Prefill.Done != r.Prompt || r.Prefill.Of > 0 &&
			r.Prompt > r.Prefill.Of {
			t.Fatalf("the numbers of a request do not add up: %+v", r)
		}
	}
	return w
}

// until asks again until what is watched is as wanted.
func (s *server) until(t *testing.T, what string, wanted func(watched) bool) watched {
	t.Helper()
	for range 1000 {
		if w := s.watch(t); wanted(w) {
			return w
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never seen: %s; last %+v", what, s.watch(t))
	return watched{}
}

// held is a network that waits at each pass until it is let on.
func held() (hold func([]pass.Segment) error, let chan struct{}) {
	let = make(chan struct{}, 1000)
	return func([]pass.Segment) error { <-let; return nil }, let
}

func TestWatchedRequestShowsEveryPhaseAndToken(t *testing.T) {
	pass, let := held()
	s := start(t, setup{pass: pass, chunk: 8, queue: 4})
	defer close(let)
	s.say("A reply of some length, long enough that a rate means something: one two three four five.")
	stream := s.open(t, t.Context(), chatPath, chat(`,"stream":true,"stream_options":{"include_usage":true}`+
		thinkingOff))
	id := stream.response.Header.Get("X-Request-Id")
	w := s.until(t, "prefill", func(w watched) bool { return len(w.Requests) == 1 && w.Requests[0].Phase == "prefill" })
	if r := w.Requests[0]; r.ID != id || r.Prefill.Of < 16 || r.Prompt != 0 || r.FirstTokenMs != nil ||
		r.FinishReason != nil || w.Server.Active != 1 || !w.Server.Ready || w.Schema != 1 {
		t.Errorf("at the start: %+v in %+v", r, w.Server)
	}
	let <- struct{}{}
	s.until(t, "the first chunk", func(w watched) bool {
		return w.Requests[0].Prompt == 8 &&
			w.Requests[0].Phase == "prefill"
	})
	for w.Requests[0].Phase == "prefill" {
		let <- struct{}{}
		w = s.watch(t)
		time.Sleep(time.Millisecond)
	}
	w = s.until(t, "decode", func(w watched) bool {
		return w.Requests[0].Phase == "decode" &&
			w.Requests[0].Completion > 0
	})
	if r := w.Requests[0]; r.Rate != nil && r.Completion <= 16 || r.FirstTokenMs == nil || r.Prompt != r.Prefill.Of {
		t.Errorf("in decode: %+v", r)
	}
	for range 900 {
		let <- struct{}{}
	}
	chunks := stream.all()
	usage := chunks[len(chunks)-1].Usage
	w = s.until(t, "the end", func(w watched) bool { return w.Requests[0].Phase == "done" })
	r := w.Requests[0]
	if r.Prompt != usage.Prompt || r.Cached != usage.Details.Cached || r.Computed != usage.Slipway.Computed ||
		r.Completion != usage.Completion {
		t.Errorf("the watcher sees %+v, usage says %+v", r, usage)
	}
	if r.FinishReason == nil || *r.FinishReason != "stop" || r.Rate == nil || *r.Rate <= 0 {
		t.Errorf("at the end: %+v", r)
	}
	if a := s.get(t, requestsPath); strings.Contains(string(a.body), "long enough") ||
		strings.Contains(string(a.body), "Hi") {
		t.Errorf("a text is shown: %s", a.body)
	}
}

func TestShortReplyHasNoRate(t *testing.T) {
	s := start(t, setup{})
	s.ask(t, thinkingOff+`,"max_tokens":3`)
	if r := s.watch(t).Requests[0]; r.Rate != nil || r.Completion != 3 {
		t.Errorf("%+v", r)
	}
}

func TestRefusedRequestLeavesTheList(t *testing.T) {
	s := start(t, setup{})
	s.post(t, chatPath, `{"model":"pocket","messages":[{"role":"user","content":"`+strings.Repeat("word ", 4000)+`"}]}`)
	s.post(t, chatPath, chat(`,"temperature":-1`))
	if w := s.watch(t); len(w.Requests) != 0 {
		t.Errorf("%+v", w.Requests)
	}
}

func TestMonitorCancelsRequests(t *testing.T) {
	pass, let := held()
	s := start(t, setup{pass: pass, queue: 4})
	defer close(let)
	type result struct {
		status int
		body   string
	}
	answers := make(chan result, 3)
	for range 3 { // two run, one waits
		go func() {
			response, err := http.Post(s.URL+chatPath, "application/json", strings.NewReader(chat(thinkingOff)))
			if err != nil {
				answers <- result{}
				return
			}
			defer response.Body.Close()
			var b struct {
				Error struct{ Code, Message string }
			}
			json.NewDecoder(response.Body).Decode(&b)
			answers <- result{response.StatusCode, b.Error.Code + ": " + b.Error.Message}
		}()
	}
	inQueue := func(w watched) (n int) { // the three are read at once: the latest need not be the one that waits
		for _, r := range w.Requests {
			if r.Phase == "queue" {
				n++
			}
		}
		return n
	}
	s.until(t, "three", func(w watched) bool { return len(w.Requests) == 3 && inQueue(w) > 0 })
	if s.watch(t).Server.Active == 1 {
		let <- struct{}{} // requests are taken up between two passes
	}
	w := s.until(t, "two at work and one in the queue", func(w watched) bool {
		return w.Server.Active == 2 &&
			w.Server.Queued == 1
	})
	if n := inQueue(w); n != 1 {
		t.Errorf("%d requests are in the queue", n)
	}
	for _, r := range w.Requests {
		if a := s.post(t, requestsPath+"/"+r.ID+"/cancel", ""); a.status != 200 ||
			!strings.Contains(string(a.body), `"cancelled":true`) {
			t.Errorf("%d: %s", a.status, a.body)
		}
	}
	for range 10 {
		let <- struct{}{}
	}
	for range 3 {
		if a := <-answers; a.status != 499 || !strings.Contains(a.body, "was cancelled on the server") {
			t.Errorf("the client receives %d %s", a.status, a.body)
		}
	}
	for _, r := range s.until(t, "rest", func(w watched) bool { return w.Server.Active == 0 }).Requests {
		if r.Phase != "cancelled" || *r.FinishReason != "cancelled" {
			t.Errorf("%+v", r)
		}
		if a := s.post(t, requestsPath+"/"+r.ID+"/cancel", "{}"); a.status != 404 ||
			!strings.Contains(string(a.body), "not_running") {
			t.Errorf("cancelled again: %d %s", a.status, a.body)
		}
	}
	if s.net.Open() != 0 {
		t.Errorf("%d sequences are left open", s.net.Open())
	}
}

func TestWatchedListIsBounded(t *testing.T) {
	s := start(t, setup{})
	for range 80 {
		s.ask(t, thinkingOff+`,"max_tokens":1`)
	}
	if w := s.watch(t); len(w.Requests) != 64 {
		t.Errorf("%d requests are remembered", len(w.Requests))
	}
}

func TestEventsSendEveryChange(t *testing.T) {
	s := start(t, setup{keepAlive: 100 * time.Millisecond})
	s.ask(t, thinkingOff)
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+eventsPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatal(kind)
	}
	lines := bufio.NewScanner(response.Body)
	next := func() (name string, data watched) {
		for lines.Scan() {
			line := lines.Text()
			if n, is := strings.CutPrefix(line, "event: "); is {
				name = n
			} else if d, is := strings.CutPrefix(line, "data: "); is {
				return name, decode[watched](t, []byte(d))
			} else if line == ":" {
				return "alive", data
			}
		}
		t.Fatal("the stream ended: ", lines.Err())
		return
	}
	if name, data := next(); name != "snapshot" || len(data.Requests) != 1 || data.Requests[0].Phase != "done" {
		t.Errorf("first %s %+v", name, data)
	}
	if name, _ := next(); name != "alive" {
		t.Errorf("%s instead of a sign of life", name)
	}
	s.ask(t, thinkingOff)
	seen := ""
	for seen != "done" {
		name, data := next()
		if name == "change" && len(data.Requests) > 1 {
			t.Errorf("a change holds %d requests, one changed", len(data.Requests))
		}
		if len(data.Requests) > 0 {
			seen = data.Requests[0].Phase
		}
	}
	leave()
	if a := s.get(t, eventsPath, func(r *http.Request) { r.Method = http.MethodHead }); a.status != 200 {
		t.Errorf("HEAD: %d", a.status)
	}
}

func TestWatchersAreBounded(t *testing.T) {
	s := start(t, setup{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for i := range 17 {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+eventsPath, nil)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if want := map[bool]int{true: 200, false: 503}[i < 16]; response.StatusCode != want {
			t.Errorf("watcher %d: status %d", i, response.StatusCode)
		}
	}
	leave()
	for range 1000 {
		if a := s.get(t, eventsPath, func(r *http.Request) { r.Method = http.MethodHead }); a.status == 200 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("places of watchers that left stay taken")
}

func TestControlIsGuarded(t *testing.T) {
	const key = "sk-0123456789abcdef"
	s := start(t, setup{key: api.NewKey(key)})
	right := header("Authorization", "Bearer "+key)
	posts := []string{requestsPath + "/req_0/cancel", reloadPath, draftPath}
	for _, path := range []string{requestsPath, eventsPath} {
		if a := s.get(t, path); a.status != 401 {
			t.Errorf("GET %s without a key: %d", path, a.status)
		}
		if a := s.get(t, path, right, header("Origin", "https://evil.example")); a.status != 403 {
			t.Errorf("GET %s from a page: %d", path, a.status)
		}
		if a := s.get(t, path, right, header("Host", "evil.example")); a.status != 403 {
			t.Errorf("GET %s by another name: %d", path, a.status)
		}
	}
	for _, path := range posts {
		for _, test := range []struct {
			name   string
			change func(*http.Request)
			status int
		}{
			{"no key", header("Accept", "*/*"), 401},
			{"a page", func(r *http.Request) { right(r); r.Header.Set("Origin", "https://evil.example") }, 403},
			{"another name", func(r *http.Request) { right(r); r.Host = "evil.example" }, 403},
			{"a form", func(r *http.Request) { right(r); r.Header.Set("Content-Type", "text/plain") }, 415},
			{"GET", func(r *http.Request) { right(r); r.Method = http.MethodGet }, 405},
		} {
			if a := s.post(t, path, "", test.change); a.status != test.status {
				t.Errorf("POST %s, %s: %d %s", path, test.name, a.status, a.body)
			}
		}
	}
	for body, status := range map[string]int{`{"drain": 1}`: 400, `{"all": true}`: 400, `[]`: 400,
		`{"drain": true}`: 200} {
		if a := s.post(t, reloadPath, body, right); a.status != status {
			t.Errorf("reload with %s: %d %s", body, a.status, a.body)
		}
	}
	if a := s.post(t, requestsPath+"/req_0/cancel", `{"drain": true}`, right); a.status != 400 {
		t.Errorf("a member that cancel has not: %d", a.status)
	}
	for _, path := range []string{requestsPath + "//cancel", requestsPath + "/a/b/cancel", requestsPath + "/req_0"} {
		if a := s.post(t, path, "", right); a.status != 404 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}
