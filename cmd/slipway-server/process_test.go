package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pocketDir is the embedded model.
const pocketDir = "../../manifests/pocket"

// TestMain lets the test binary be the server: the processes below are real ones.
func TestMain(m *testing.M) {
	if os.Getenv("SLIPWAY_SERVER_TEST_MAIN") == "1" {
		os.Exit(run(os.Args, os.Stdout, os.Stderr))
	}
	code := m.Run()
	if fakeMetalBuilt != "" {
		os.RemoveAll(filepath.Dir(fakeMetalBuilt))
	}
	os.Exit(code)
}

func command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "SLIPWAY_SERVER_TEST_MAIN=1")
	return c
}

// finished runs a command that should end by itself.
func finished(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	return finish(t, command(args...))
}

func finish(t *testing.T, c *exec.Cmd) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	defer timer.Stop()
	err := c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// process is a server that runs.
type process struct {
	*exec.Cmd
	url  string // without /v1
	done chan struct{}

	mu  sync.Mutex
	log strings.Builder
}

// serving starts a server and waits for its ready line.
func serving(t testing.TB, args ...string) *process {
	t.Helper()
	return begin(t, command(append([]string{"serve", "--model", pocketDir, "--port", "0"}, args...)...))
}

func begin(t testing.TB, c *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: c, done: make(chan struct{})}
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if at, found := strings.CutPrefix(lines.Text(), "slipway-server: ready at "); found {
				ready <- strings.TrimSuffix(at, "/v1")
			}
		}
		p.Wait()
	}()
	t.Cleanup(func() {
		p.Process.Kill()
		<-p.done
	})
	select {
	case p.url = <-ready:
	case <-p.done:
		t.Fatalf("the server ended: %s", p.said())
	case <-time.After(time.Minute):
		t.Fatalf("the server is not ready: %s", p.said())
	}
	return p
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// ended waits for the process, for as long as a stop may take and what a loaded machine adds.
func (p *process) ended(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
		return p.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		t.Fatalf("the server does not stop: %s", p.said())
		return -1
	}
}

func (p *process) post(t *testing.T, body string) *http.Response {
	t.Helper()
	response, err := http.Post(p.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// hello is the README's request.
const hello = `{"model":"pocket","stream":true,"temperature":0,"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"Hello"}],"chat_template_kwargs":{"enable_thinking":false}}`

// streamed joins the content of a stream; whole says that it ended with [DONE].
func streamed(t *testing.T, body io.Reader) (content, finish string, whole bool) {
	t.Helper()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		if data == "[DONE]" {
			return content, finish, true
		}
		var c struct {
			Choices []struct {
				Delta        struct{ Content string }
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		for _, choice := range c.Choices {
			content += choice.Delta.Content
			finish += choice.FinishReason
		}
	}
	return content, finish, false
}

func TestHelloIsNotAnswered(t *testing.T) {
	p := serving(t, "--launch-id", "test-1", "--revision", strings.Repeat("0a", 20))
	if content, finish, whole := streamed(t, p.post(t, hello).Body); content != "Hello! How can I help you?" || finish != "stop" || !whole {
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
	if err := json.NewDecoder(response.Body).Decode(&health); err != nil || health.Product != "slipway" || health.PID != p.Process.Pid || health.LaunchID != "test-1" || !health.Ready || health.Model != "pocket" {
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

// long makes the model work for a while: its prompt has some 6,000 tokens.
func long(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(strings.Repeat("The keeper of the harbour wrote the number of every boat into a book. ", 330))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"model":"pocket","stream":true,"temperature":1,"seed":3,"logit_bias":{"4088":-100,"4086":-100},"messages":[{"role":"user","content":%s}],"chat_template_kwargs":{"enable_thinking":false}}`, text)
}

func TestSignalLosesAReplyOrHangs(t *testing.T) {
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
		response := p.post(t, strings.Replace(hello, `"temperature":0`, `"temperature":0,"max_tokens":400,"logit_bias":{"4088":-100,"4086":-100}`, 1))
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
		endless := strings.Replace(hello, `"temperature":0`, `"temperature":1,"seed":3,"logit_bias":{"4088":-100,"4086":-100}`, 1)
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

func TestSettingThatCannotBeHonouredIsTaken(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "0123456789abcdef\n", 0o600)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(args ...string) []string {
		return append([]string{"serve", "--model", pocketDir, "--port", "0"}, args...)
	}
	tests := []struct {
		name string
		args []string
		says string
	}{
		{"no command", nil, "a command is missing"},
		{"unknown command", []string{"surf"}, `no command "surf"`},
		{"unknown flag", serve("--turbo"), "turbo"},
		{"flag behind an argument", []string{"serve", "x", "--port", "0"}, "--port stands behind an argument"},
		{"argument", serve("x"), `no argument "x"`},
		{"probe with an argument", []string{"probe", "x"}, `no argument "x"`},
		{"no model", []string{"serve"}, "--model is missing"},
		{"no such model", []string{"serve", "--model", filepath.Join(dir, "nowhere")}, "no such folder"},
		{"metal where there is none", serve("--device", "metal"), "Metal is part of macOS"},
		{"unknown device", serve("--device", "tpu"), "auto, cpu and metal"},
		{"port too high", serve("--port", "70000"), "[0, 65535]"},
		{"port is a word", serve("--port", "http"), "port"},
		{"window beyond the model's", serve("--window", "40000"), "the model's own window is 32768"},
		{"window too small", serve("--window", "10"), "--window 10"},
		{"parallel zero", serve("--parallel", "0"), "--parallel 0"},
		{"queue negative", serve("--queue", "-1"), "--queue -1"},
		{"host is a name", serve("--host", "example.org"), "must be an IP address"},
		{"public host", serve("--host", "8.8.8.8", "--api-key-file", good), "public address"},
		{"all interfaces without a key", serve("--host", "0.0.0.0"), "needs a key"},
		{"IPv6 all interfaces without a key", serve("--host", "::"), "needs a key"},
		{"LAN without a key", serve("--host", "192.168.1.5"), "needs a key"},
		{"key file of others", serve("--api-key-file", file("open", "0123456789abcdef", 0o644)), "mode 0644"},
		{"key file of the group", serve("--api-key-file", file("group", "0123456789abcdef", 0o640)), "chmod 600"},
		{"key too short", serve("--api-key-file", file("short", "secret\n", 0o600)), "at least 16"},
		{"key of two words", serve("--api-key-file", file("words", "0123456789abcdef 0123456789abcdef", 0o600)), "visible ASCII"},
		{"key file empty", serve("--api-key-file", file("empty", "", 0o600)), "at least 16"},
		{"key file missing", serve("--api-key-file", filepath.Join(dir, "none")), "no such file"},
		{"key file is a folder", serve("--api-key-file", dir), "is no regular file"},
		{"key file is a pipe", serve("--api-key-file", pipe), "is no regular file"},
		{"key file is a device", serve("--api-key-file", "/dev/zero"), "is no regular file"},
		{"key file unnamed", serve("--api-key-file", ""), "no such file"},
		{"launch id", serve("--launch-id", "a b"), "--launch-id"},
		{"revision is a branch", serve("--revision", "main"), "40 lower-case hex"},
		{"model id", serve("--model-id", "a b"), "--model-id"},
		{"allowed host with a port", serve("--allow-host", "mac.local:80"), "without a port"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if runtime.GOOS == "darwin" && strings.HasPrefix(test.name, "metal") {
				t.Skip("this machine may have Metal")
			}
			code, out, errOut := finished(t, test.args...)
			last := errOut[strings.LastIndex(strings.TrimSpace(errOut), "\n")+1:]
			if code != exitUsage || out != "" || !strings.HasPrefix(last, "slipway-server: ") || !strings.Contains(last, test.says) {
				t.Errorf("exit %d, stdout %q, stderr %q", code, out, errOut)
			}
			if strings.Contains(errOut, "0123456789abcdef") {
				t.Errorf("the key is printed: %s", errOut)
			}
		})
	}
}

func TestTakenPortEndsWithItsOwnCode(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	code, _, errOut := finished(t, "serve", "--model", pocketDir, "--port", port)
	if code != exitAddress || !strings.Contains(errOut, "address already in use") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

func TestModelThatCannotBeLoaded(t *testing.T) {
	files := []string{"config.json", "tokenizer.json", "generation_config.json", "chat_template.jinja", "model.safetensors"}
	tests := []struct {
		name, file string
		damage     func([]byte) []byte // nil result removes the file
		says       string
	}{
		{"no config", "config.json", func([]byte) []byte { return nil }, "config.json"},
		{"config of another family", "config.json", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("qwen3_5"), []byte("llama")) }, "model_type"},
		{"no tokenizer", "tokenizer.json", func([]byte) []byte { return nil }, "tokenizer.json"},
		{"tokenizer cut", "tokenizer.json", func(b []byte) []byte { return b[:1000] }, "tokenizer.json"},
		{"weights cut", "model.safetensors", func(b []byte) []byte { return b[:len(b)-1000] }, "model.safetensors"},
		{"end token beyond the vocabulary", "config.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"eos_token_id": 4088`), []byte(`"eos_token_id": 5000`), 1)
		}, "eos_token_id: found 5000"},
		{"end token that the tokenizer has not", "tokenizer.json", func(b []byte) []byte {
			var file map[string]any
			if err := json.Unmarshal(b, &file); err != nil {
				t.Fatal(err)
			}
			added := file["added_tokens"].([]any)
			file["added_tokens"] = slices.DeleteFunc(added, func(token any) bool { return token.(map[string]any)["id"].(float64) >= 4088 })
			out, err := json.Marshal(file)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}, "eos_token_id: found 4088"},
		{"template without text", "chat_template.jinja", func([]byte) []byte { return []byte("\n") }, "empty template"},
		{"sampling defaults out of range", "generation_config.json", func(b []byte) []byte { return bytes.Replace(b, []byte("0.7"), []byte("7.0"), 1) }, "temperature"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "broken")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, name := range files {
				content, err := os.ReadFile(filepath.Join(pocketDir, name))
				if err != nil {
					t.Fatal(err)
				}
				if name == test.file {
					content = test.damage(content)
				}
				if content == nil {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, _, errOut := finished(t, "serve", "--model", dir, "--port", "0")
			if code != exitModel || !strings.Contains(errOut, "cannot be loaded") || !strings.Contains(errOut, test.says) || strings.Contains(errOut, "goroutine") {
				t.Errorf("exit %d: %s", code, errOut)
			}
		})
	}
}

func TestDefaultWindowIsMoreThanTheModelHas(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"config.json", "tokenizer.json", "generation_config.json", "chat_template.jinja", "model.safetensors"} {
		content, err := os.ReadFile(filepath.Join(pocketDir, name))
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.Replace(content, []byte(`"max_position_embeddings": 32768`), []byte(`"max_position_embeddings": 4096`), 1)
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := serving(t, "--model", dir, "--model-id", "small")
	response, err := http.Get(p.url + "/v1/models/small")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); !strings.Contains(string(body), `"context_window":4096`) {
		t.Errorf("%s", body)
	}
}

func TestProbeOffersWhatServeRefuses(t *testing.T) {
	code, out, errOut := finished(t, "probe")
	var p map[string]any
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&p); err != nil || code != 0 || errOut != "" {
		t.Fatalf("exit %d, %v, stderr %q", code, err, errOut)
	}
	if d.More() || p["schema_version"] != 1.0 {
		t.Errorf("%s", out)
	}
	for _, member := range []string{"version", "os", "arch", "device", "devices", "recommended_max_working_set", "max_buffer_length", "capabilities"} {
		if _, there := p[member]; !there {
			t.Errorf("%s is missing", member)
		}
	}
	for _, device := range p["devices"].([]any) {
		serving(t, "--device", device.(string))
	}
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
		{"key", "", key, 200}, {"no key", "", "", 401}, {"allowed name", "mac.local", key, 200}, {"other name", "pc.local", key, 403},
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
