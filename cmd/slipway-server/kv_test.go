package main

import (
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// 8-bit keys and values from HTTP to the kernels: chosen, said, half the memory, kept on disk bit for bit, and never
// mixed with 16 bit.
func TestServerOnMetalKeeps8BitKVApart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	serve := func(kv string) *process {
		t.Helper()
		return begin(t, fakeCommand(t, "", "serve", "--model", pocketDir, "--port", "0", "--device", "metal",
			"--window", "1024", "--kv", kv,
			"--cache-memory", strconv.Itoa(32<<20), "--cache-disk", dir))
	}
	end := func(p *process) {
		t.Helper()
		p.Process.Signal(syscall.SIGTERM)
		if code := p.ended(t); code != exitOK {
			t.Fatalf("exit code %d: %s", code, p.said())
		}
	}
	// Pages of 256 tokens: two layers, two heads of 64, keys and values. The MTP head, which has a layer of its own, is
	// not loaded.
	pageTokens := func(p *process, pageBytes int) {
		t.Helper()
		said := regexp.MustCompile(`restore points" points=\d+ tokens=(\d+)`).FindStringSubmatch(p.said())
		if want := 16 << 20 / pageBytes * 256; said == nil || said[1] != strconv.Itoa(want) {
			t.Errorf("half of 32 MiB holds %q tokens, wanted %d", said, want)
		}
	}
	conversation := []message{
		user(strings.Repeat("The river runs by the old stone bridge. ", 32) + "What is it about?")}
	p := serve("q8")
	pageTokens(p, 256*2*2*2*(64+4))
	content, first, _ := turnOf(t, p, conversation)
	if first < 300 {
		t.Fatalf("a prompt of %d tokens fills no page", first)
	}
	conversation = append(conversation, message{"role": "assistant", "content": content}, user("And then?"))
	response, err := http.Get(p.url + "/slipway/requests")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if !strings.Contains(string(page), `"kv_format":"q8"`) || !strings.Contains(p.said(), "kv=q8") {
		t.Errorf("not said: %s\n%s", page, p.said())
	}
	want, _, _ := turnOf(t, p, conversation)
	reply, _ := io.ReadAll(p.post(t, string(body([]message{user("Hello")}, message{"max_tokens": 1}))).Body)
	if !strings.Contains(string(reply), `"approximations":["keys and values in q8"]`) {
		t.Errorf("the usage does not name the approximation: %s", reply)
	}
	end(p)

	p = serve("q8")
	got, prompt, cached := turnOf(t, p, conversation)
	if cached < first-slack || got != want {
		t.Errorf("%d of %d tokens were restored, the last turn had %d; it says %q, before the restart %q", cached,
			prompt, first, got, want)
	}
	end(p)

	p = serve("f16")
	pageTokens(p, 256*2*2*2*64*2)
	if _, _, cached = turnOf(t, p, conversation); cached != 0 {
		t.Errorf("%d tokens of 8 bit go on in 16", cached)
	}
	if !strings.Contains(p.said(), "cannot serve this run and are dropped") || !strings.Contains(p.said(), "KV in q8") {
		t.Errorf("not said: %s", p.said())
	}
}
