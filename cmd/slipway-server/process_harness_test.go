package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// long makes the model work for a while: its prompt has some 6,000 tokens.
func long(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(strings.Repeat("The keeper of the harbour wrote the number of every boat into a book. ",
		330))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"model":"pocket","stream":true,"temperature":1,"seed":3,"logit_bias":{"4088":-100,"4086":-100},"messages":[{"role":"user","content":%s}],"chat_template_kwargs":{"enable_thinking":false}}`, text)
}
