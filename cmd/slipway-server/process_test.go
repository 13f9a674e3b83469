package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestHelloIsAnswered(t *testing.T) {
	p := serving(t, "--launch-id", "test-1", "--revision", strings.Repeat("0a", 20))
	if content, finish, whole := streamed(t, p.post(t, hello).Body); content != "Hello! How can I help you?" ||
		finish != "stop" || !whole {
		t.Errorf("%q, %q, whole %v", content, finish, whole)
	}
	response, err := http.Get(p.url + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var health struct {
		Product  string
		PID      int
		LaunchID string `json:"launch_id"`
		Ready    bool
		Model    string
	}
	if err := json.NewDecoder(response.Body).Decode(&health); err != nil || health.Product != "slipway" ||
		health.PID != p.Process.Pid || health.LaunchID != "test-1" || !health.Ready || health.Model != "pocket" {
		t.Errorf("health %+v, %v", health, err)
	}
	for _, secret := range []string{"helpful", "How can I", "Hello"} {
		if strings.Contains(p.said(), secret) {
			t.Errorf("the log holds %q: %s", secret, p.said())
		}
	}
	if !strings.Contains(p.said(), "outcome=stop") {
		t.Errorf("the log does not tell of the request: %s", p.said())
	}
}

func TestSignalEndsTheServerInTimeWithEveryReplyEnded(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run("idle, "+sig.String(), func(t *testing.T) {
			p := serving(t)
			p.Process.Signal(sig)
			if code := p.ended(t); code != 0 {
				t.Errorf("exit %d: %s", code, p.said())
			}
		})
	}
	t.Run("a short reply ends by itself", func(t *testing.T) {
		p := serving(t)
		response := p.post(t, strings.Replace(hello, `"temperature":0`,
			`"temperature":0,"max_tokens":400,"logit_bias":{"4088":-100,"4086":-100}`, 1))
		p.Process.Signal(syscall.SIGTERM)
		if _, finish, whole := streamed(t, response.Body); !whole || finish != "length" {
			t.Errorf("finish %q, whole %v: %s", finish, whole, p.said())
		}
		if code := p.ended(t); code != 0 {
			t.Errorf("exit %d: %s", code, p.said())
		}
	})
	t.Run("an endless reply is cut after a while, and the client is told", func(t *testing.T) {
		p := serving(t, "--window", "32768")
		endless := strings.Replace(hello, `"temperature":0`,
			`"temperature":1,"seed":3,"logit_bias":{"4088":-100,"4086":-100}`, 1)
		var response *http.Response
		for range 8 { // 260,000 tokens, two replies at once: far beyond what a stop waits for
			response = p.post(t, endless)
		}
		p.Process.Signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(response.Body)
		if strings.Contains(string(rest), "[DONE]") || !strings.Contains(string(rest), `"code":"stopping"`) {
			t.Errorf("a cut stream ends with %.300q", rest[max(0, len(rest)-300):])
		}
		if code := p.ended(t); code != 0 {
			t.Errorf("exit %d: %s", code, p.said())
		}
	})
	t.Run("a second signal cuts, and the client is told", func(t *testing.T) {
		p := serving(t)
		response := p.post(t, long(t))
		first := make([]byte, 10)
		if _, err := io.ReadFull(response.Body, first); err != nil {
			t.Fatal(err)
		}
		p.Process.Signal(syscall.SIGTERM)
		for !strings.Contains(p.said(), "stopping") {
			time.Sleep(time.Millisecond)
		}
		p.Process.Signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(response.Body)
		if strings.Contains(string(rest), "[DONE]") || !strings.Contains(string(rest), `"code":"stopping"`) {
			t.Errorf("a cut stream ends with %.300q", rest[max(0, len(rest)-300):])
		}
		if code := p.ended(t); code != 0 {
			t.Errorf("exit %d: %s", code, p.said())
		}
	})
}

func TestKeyedServerOnAllInterfaces(t *testing.T) {
	const key = "0123456789abcdef0123"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serving(t, "--host", "0.0.0.0", "--api-key-file", file, "--allow-host", "mac.local")
	for _, test := range []struct {
		name, host, key string
		status          int
	}{
		{"key", "", key, 200}, {"no key", "", "", 401}, {"allowed name", "mac.local", key, 200},
		{"other name", "pc.local", key, 403},
	} {
		r, err := http.NewRequest(http.MethodGet, p.url+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.host != "" {
			r.Host = test.host
		}
		if test.key != "" {
			r.Header.Set("Authorization", "Bearer "+test.key)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != test.status {
			t.Errorf("%s: status %d, want %d", test.name, response.StatusCode, test.status)
		}
	}
	if strings.Contains(p.said(), key) {
		t.Error("the key is in the log")
	}
}

func TestPageOfAnAllowedOriginAsksARealServer(t *testing.T) {
	const key = "0123456789abcdef0123"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serving(t, "--allow-origin", "http://localhost:3000", "--allow-origin", "app://", "--origin-key-file", file,
		"--allow-host", "host.docker.internal")
	for _, test := range []struct {
		name, method, host, origin, key string
		status                          int
	}{
		{"no page", "GET", "", "", "", 200},
		{"container", "GET", "host.docker.internal:8008", "", "", 200},
		{"preflight", "OPTIONS", "", "http://localhost:3000", "", 204},
		{"page", "GET", "", "http://localhost:3000", key, 200},
		{"program", "GET", "", "app://obsidian.md", key, 200},
		{"page without the key", "GET", "", "http://localhost:3000", "", 401},
		{"other page", "GET", "", "http://localhost:3001", key, 403},
	} {
		r, err := http.NewRequest(test.method, p.url+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = test.host
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
			r.Header.Set("Access-Control-Request-Method", "GET")
		}
		if test.key != "" {
			r.Header.Set("X-Api-Key", test.key)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		may := test.origin
		if test.status == 403 {
			may = ""
		}
		if got := response.Header.Get("Access-Control-Allow-Origin"); response.StatusCode != test.status || got != may {
			t.Errorf("%s: status %d, want %d, shared with %q", test.name, response.StatusCode, test.status, got)
		}
	}
	if strings.Contains(p.said(), key) {
		t.Error("the key is in the log")
	}
}
