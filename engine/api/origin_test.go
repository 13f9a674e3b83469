package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"slipway/engine/api"
)

const (
	pageOrigin = "https://chat.example"
	originKey  = "sk-0123456789abcdef"
)

func withHeaders(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Set(pairs[i], pairs[i+1])
		}
	}
}

// sharedWith is the origin that may read an answer.
func sharedWith(a answer) string { return a.header.Get("Access-Control-Allow-Origin") }

func TestPagesOfAllowedOriginsAskWithAKey(t *testing.T) {
	s := start(t, setup{originKey: api.NewKey(originKey),
		origins: []string{pageOrigin, "http://localhost:3000", "app://"}})
	for _, test := range []struct {
		name, origin, key string
		status            int
	}{
		{"no page, no key", "", "", 200},
		{"own page, no key", s.URL, "", 200},
		{"allowed", pageOrigin, originKey, 200},
		{"in other letters", "HTTPS://Chat.Example", originKey, 200},
		{"of this machine", "http://localhost:3000", originKey, 200},
		{"program of an allowed scheme", "app://obsidian.md", originKey, 200},
		{"program that names its scheme alone", "app://", originKey, 200},
		{"without a key", pageOrigin, "", 401},
		{"with a wrong key", pageOrigin, "sk-wrong", 401},
		{"program without a key", "app://obsidian.md", "", 401},
		{"null", "null", originKey, 403},
		{"star", "*", originKey, 403},
		{"unencrypted", "http://chat.example", originKey, 403},
		{"other port", pageOrigin + ":8443", originKey, 403},
		{"below the allowed name", "https://a.chat.example", originKey, 403},
		{"name that begins like it", "https://chat.example.evil", originKey, 403},
		{"name that ends like it", "https://evilchat.example", originKey, 403},
		{"with a path", pageOrigin + "/", originKey, 403},
		{"two in one header", pageOrigin + ", https://evil.example", originKey, 403},
		{"scheme that begins like it", "application://x", originKey, 403},
		{"program of another scheme", "tauri://localhost", originKey, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			head := withHeaders("Sec-Fetch-Site", "none")
			if test.origin != "" {
				head = withHeaders("Origin", test.origin, "Sec-Fetch-Site", "cross-site")
				if test.origin == s.URL {
					head = withHeaders("Origin", test.origin, "Sec-Fetch-Site", "same-origin")
				}
			}
			key := withHeaders()
			if test.key != "" {
				key = withHeaders("Authorization", "Bearer "+test.key)
			}
			may := ""
			if test.status != 403 && test.origin != "" && test.origin != s.URL {
				may = test.origin
			}
			check := func(what string, a answer, status int) {
				t.Helper()
				if a.status != status || sharedWith(a) != may {
					t.Errorf("%s: status %d, want %d; shared with %q, want %q: %s", what, a.status, status,
						sharedWith(a), may, a.body)
				}
				if !slices.Contains(a.header.Values("Vary"), "Origin") ||
					a.header.Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%s: %v", what, a.header)
				}
			}
			check("models", s.get(t, "/v1/models", head, key), test.status)
			check("chat", s.post(t, chatPath, chat(thinkingOff), head, key), test.status)
			stream := s.post(t, chatPath, chat(thinkingOff+`,"stream":true`), head, key)
			check("stream", stream, test.status)
			if test.status == 200 {
				if !strings.Contains(string(stream.body), "[DONE]") {
					t.Errorf("stream: %s", stream.body)
				}
				check("fault", s.post(t, chatPath, "{", head, key), 400)
				check("other method", s.get(t, chatPath, head, key), 405)
				check("message", s.post(t, "/v1/messages", "{", head, key), 400)
			}
			if may == "" {
				return
			}
			for _, path := range []string{"/health", "/metrics", "/slipway/requests", "/slipway/events", "/nowhere"} {
				if a := s.get(t, path, head, key); a.status != 403 || sharedWith(a) != "" {
					t.Errorf("%s: status %d, shared with %q", path, a.status, sharedWith(a))
				}
			}
			if a := s.post(t, "/slipway/reload", "{}", head, key); a.status != 403 || sharedWith(a) != "" {
				t.Errorf("reload: status %d, shared with %q", a.status, sharedWith(a))
			}
		})
	}
	if strings.Contains(s.log.String(), originKey) {
		t.Error("the log holds the key")
	}
}

func TestPreflightIsAnsweredWithoutAKey(t *testing.T) {
	keys := map[string]setup{"for pages": {originKey: api.NewKey(originKey)}, "for all": {key: api.NewKey(originKey)}}
	for whose, how := range keys {
		how.origins = []string{pageOrigin}
		s := start(t, how)
		for _, test := range []struct {
			name, path, origin, method string
			status                     int
			allowed                    string
		}{
			{"chat", chatPath, pageOrigin, "POST", 204, "POST"},
			{"models", "/v1/models", pageOrigin, "GET", 204, "GET, HEAD"},
			{"messages", "/v1/messages", pageOrigin, "POST", 204, "POST"},
			{"other page", chatPath, "https://evil.example", "POST", 403, ""},
			{"null", chatPath, "null", "POST", 403, ""},
			{"control", "/slipway/reload", pageOrigin, "POST", 403, ""},
			{"watching", "/slipway/requests", pageOrigin, "GET", 403, ""},
			{"metrics", "/metrics", pageOrigin, "GET", 403, ""},
			{"nowhere", "/nowhere", pageOrigin, "GET", 403, ""},
		} {
			a := s.post(t, test.path, "", withHeaders("Origin", test.origin, "Sec-Fetch-Site", "cross-site",
				"Access-Control-Request-Method", test.method, "Access-Control-Request-Headers",
				"authorization,content-type,x-stainless-os"), func(r *http.Request) { r.Method = http.MethodOptions })
			headers, may := "", ""
			if test.status == 204 {
				headers, may = "authorization,content-type,x-stainless-os", test.origin
			}
			if a.status != test.status || a.header.Get("Access-Control-Allow-Methods") != test.allowed ||
				a.header.Get("Access-Control-Allow-Headers") != headers || sharedWith(a) != may {
				t.Errorf("key %s, %s: status %d, %v", whose, test.name, a.status, a.header)
			}
		}
		// an OPTIONS that is no preflight needs the key
		if a := s.post(t, chatPath, "", withHeaders("Origin", pageOrigin),
			func(r *http.Request) { r.Method = http.MethodOptions }); a.status != 401 || sharedWith(a) != pageOrigin {
			t.Errorf("key %s, OPTIONS alone: status %d, %v", whose, a.status, a.header)
		}
	}
}

func TestRefusedPageLearnsTheFlagOnlyWhereItHelps(t *testing.T) {
	s := start(t, setup{})
	for _, row := range []struct {
		host, origin, flag string
	}{
		{"", pageOrigin, "--allow-origin " + pageOrigin},
		{"", "null", ""},
		{"", "chrome-extension://abcdef", ""},
		{"mac.local:8008", "", "--allow-host mac.local"},
		{"a_b", "", ""},
	} {
		a := s.get(t, "/v1/models", func(r *http.Request) {
			if row.host != "" {
				r.Host = row.host
			}
			if row.origin != "" {
				r.Header.Set("Origin", row.origin)
			}
		})
		if a.status != 403 || !strings.Contains(string(a.body), row.flag) ||
			row.flag == "" && strings.Contains(string(a.body), "--") {
			t.Errorf("%+v: status %d, %s", row, a.status, a.body)
		}
	}
}
