package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// launchFile is what an installer leaves behind.
const launchFile = `{"schema_version":1,"profile":"exact","budget_bytes":2147483648,
"limit":"Window cut from 262,144 to 32,768 tokens: Metal may use 27.0 GiB of this Mac's 36 GiB.",
"neighbors":[{"title":"MTPLX","port":8000,"models":["qwen"],"sentence":"MTPLX with qwen on port 8000 is stopped while slipway runs."}]}`

// monitored starts a server with a monitor; at is its address without a path.
func monitored(t *testing.T, args ...string) (p *process, at string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "launch.json")
	if err := os.WriteFile(file, []byte(launchFile), 0o600); err != nil {
		t.Fatal(err)
	}
	p = serving(t, append([]string{"--monitor-port", "0", "--launch-file", file}, args...)...)
	found := regexp.MustCompile(`monitor at (http://127\.0\.0\.1:\d+)/monitor`).FindStringSubmatch(p.said())
	if found == nil {
		t.Fatalf("the log does not say where the monitor is: %s", p.said())
	}
	return p, found[1]
}

// boat is a request of about 18 tokens a line that is answered until max_tokens or the window.
func boat(lines int, more string) string {
	text, _ := json.Marshal(strings.Repeat("The keeper of the harbour wrote the number of every boat into a book. ",
		lines))
	return fmt.Sprintf(`{"model":"pocket","stream":true,"stream_options":{"include_usage":true},"temperature":1,"seed":3,"logit_bias":{"4088":-100,"4086":-100}%s,`+
		`"messages":[{"role":"user","content":%s}],"chat_template_kwargs":{"enable_thinking":false}}`, more, text)
}

// seen is one request as /slipway/requests tells it.
type seen struct {
	ID                string
	Phase             string
	PromptTokens      int      `json:"prompt_tokens"`
	CachedTokens      int      `json:"cached_tokens"`
	ComputedTokens    int      `json:"computed_tokens"`
	CompletionTokens  int      `json:"completion_tokens"`
	PrefillMs         float64  `json:"prefill_ms"`
	FirstTokenMs      *float64 `json:"first_token_ms"`
	PrefillTokensPerS *float64 `json:"prefill_tokens_per_s"`
	DecodeTokensPerS  *float64 `json:"decode_tokens_per_s"`
	Prefill           struct {
		Of int `json:"of_tokens"`
	}
}

func getJSON[T any](t *testing.T, address string) T {
	t.Helper()
	var value T
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(raw, &value)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", address, response.StatusCode, err, raw)
	}
	return value
}

func requestsOf(t *testing.T, p *process) []seen {
	t.Helper()
	return getJSON[struct{ Requests []seen }](t, p.url+"/slipway/requests").Requests
}

// A request goes through its phases in front of a person who sees its numbers, cancels it, and reloads the model.
func TestMonitorShowsWhatTheServerDoes(t *testing.T) {
	p, at := monitored(t, "--parallel", "1", "--window", "32768", "--cache-disk", t.TempDir())
	b := browse(t)
	b.looks(1280, 900, "light")
	b.do(chromedp.Navigate(at + "/monitor"))
	b.until("the model", `document.getElementById("model").textContent === "pocket" && document.getElementById("state").textContent === "Ready"`)
	evaluate[bool](b, `window.phases = new Set(); window.words = []; window.wrong = [];
		new MutationObserver(() => {
			for (const card of document.querySelectorAll("#active > li")) {
				phases.add(card.dataset.phase);
				words.push(card.querySelector(".what").textContent);
				const [, sum, cached, computed] = card.querySelector(".sum").textContent.replaceAll(",", "").match(/(\d+) = (\d+) cached \+ (\d+) computed/).map(Number);
				if (sum !== cached + computed) wrong.push(card.textContent);
			}
		}).observe(document.getElementById("active"), {subtree: true, childList: true, attributes: true, characterData: true}); true`)

	endless := p.post(t, boat(300, ""))    // 7,000 tokens to read, then until the window is full
	p.post(t, boat(3, `,"max_tokens":40`)) // waits behind it
	b.until("decode", `phases.has("decode") && words.some((w) => w.startsWith("Decode ") && w.includes("(provisional)"))`)
	for _, phase := range []string{"queue", "prefill", "decode"} {
		if !evaluate[bool](b, fmt.Sprintf("phases.has(%q)", phase)) {
			t.Errorf("%s was never shown; shown were %v", phase, evaluate[[]string](b, "[...phases]"))
		}
	}
	if !evaluate[bool](b, `words.some((w) => /^Prefill [\d,]+ of [\d,]+ tokens · .* tok\/s so far \(provisional\) · about .* left$/.test(w))`) {
		t.Errorf("prefill is shown as %q",
			evaluate[[]string](b, `words.filter((w) => w.startsWith("Prefill")).slice(0, 5)`))
	}
	if wrong := evaluate[[]string](b, "wrong"); len(wrong) > 0 {
		t.Errorf("a prompt is not cached + computed: %q", wrong[0])
	}
	b.picture("busy-light")
	b.colours("busy, light", 20)

	b.do(chromedp.Click(chromedp.CSS(`#active > li[data-phase="decode"] button`)))
	if rest, _ := io.ReadAll(endless.Body); !strings.Contains(string(rest), "cancelled on the server before it "+
		"was complete") {
		t.Errorf("the cancelled stream ends with %.300q", rest[max(0, len(rest)-300):])
	}
	b.until("the cancelled request among the recent ones",
		`document.querySelector('#recent tr[data-phase="cancelled"]') !== null`)
	b.until("rest", `document.getElementById("active-none").checkVisibility()`)

	// A conversation whose head changes is recomputed, and the page says where and why.
	head := func(id string) string {
		return fmt.Sprintf(`{"model":"pocket","temperature":0,"max_tokens":40,"logit_bias":{"4088":-100,"4086":-100},"messages":[{"role":"system","content":"Request id: %s. %s"},{"role":"user","content":"secret-of-the-user"}],"chat_template_kwargs":{"enable_thinking":false}}`,
			id, strings.Repeat("You are a helpful assistant. ", 40))
	}
	for _, id := range []string{"11111111", "22222222", "22222222"} {
		io.Copy(io.Discard, p.post(t, head(id)).Body)
	}
	b.until("the snippet of a miss",
		`[...document.querySelectorAll("#recent details dd")].some((d) => d.textContent.includes("11111"))`)
	evaluate[bool](b, `document.querySelector("#recent details").open = true`)
	if strings.Contains(evaluate[string](b, "document.documentElement.outerHTML"), "secret-of-the-user") {
		t.Error("the page holds text of a prompt that is no snippet")
	}

	b.sameNumbers(p)
	b.until("the chart", `document.querySelectorAll("#charts rect").length >= 2 && document.querySelector("#hour tr") !== null`)
	for _, line := range []string{"MTPLX with qwen on port 8000 is stopped", "Metal may use 27.0 GiB", "2.0 GiB"} {
		if !strings.Contains(evaluate[string](b, "document.body.innerText"), line) {
			t.Errorf("the page does not show %q", line)
		}
	}
	b.labels()
	b.keyboard()
	for _, look := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"light", 1280, 900, "light"}, {"dark", 1280, 900, "dark"}, {"phone-light", 375, 800, "light"},
		{"phone-dark", 375, 800, "dark"}} {
		b.looks(look.width, look.height, look.scheme)
		b.colours(look.name, 20)
		if over := evaluate[int](b, "document.documentElement.scrollWidth - "+
			"document.documentElement.clientWidth"); over > 0 {
			t.Errorf("%s: the page is %d pixels wider than the window", look.name, over)
		}
		b.picture(look.name)
	}

	b.looks(1280, 900, "light")
	b.do(chromedp.Click(chromedp.CSS("#reload")), chromedp.WaitVisible(chromedp.CSS("#reload-dialog")))
	if asks := evaluate[string](b, `document.getElementById("reload-dialog").innerText`); !strings.Contains(
		asks, "drops everything that is kept between requests") {
		t.Errorf("it asks: %s", asks)
	}
	b.picture("reload")
	b.colours("reload", 20)
	b.do(chromedp.Click(chromedp.CSS("#reload-no")))
	if strings.Contains(p.said(), "asked to reload") {
		t.Error("reloaded without a yes")
	}
	b.do(chromedp.Click(chromedp.CSS("#reload")), chromedp.WaitVisible(chromedp.CSS("#reload-dialog")),
		chromedp.Click(chromedp.CSS("#reload-yes")))
	b.until("the end of the reload",
		`document.getElementById("message").textContent.startsWith("The model was reloaded in")`)
	if !strings.Contains(p.said(), "asked to reload") {
		t.Error("the page says that it reloaded, and the log does not")
	}
	io.Copy(io.Discard, p.post(t, head("22222222")).Body)
	if r := requestsOf(t, p)[0]; r.CachedTokens != 0 {
		t.Errorf("%d tokens were cached after a reload", r.CachedTokens)
	}
	b.clean(at)
}

// What a page of another site can try, by HTTP alone.
func TestMonitorRefusesWhomTheAPIRefuses(t *testing.T) {
	const key = "0123456789abcdef0123"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, at := monitored(t, "--api-key-file", file)
	bearer := [2]string{"Authorization", "Bearer " + key}
	evil := [2]string{"Origin", "https://evil.example"}
	asJSON := [2]string{"Content-Type", "application/json"}
	for _, test := range []struct {
		name, method, path string
		headers            [][2]string
		status             int
	}{
		{"the page needs no key", "GET", "/monitor", nil, 200},
		{"its files need none", "GET", "/monitor/main.js", nil, 200},
		{"somebody follows a link", "GET", "/monitor", [][2]string{{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Mode", "navigate"}, {"Sec-Fetch-Dest", "document"}}, 200},
		{"a frame", "GET", "/monitor", [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"},
			{"Sec-Fetch-Dest", "iframe"}}, 403},
		{"a script of another page", "GET", "/monitor/main.js", [][2]string{{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Mode", "no-cors"}, {"Sec-Fetch-Dest", "script"}}, 403},
		{"a rebound name", "GET", "/monitor", [][2]string{{"Host", "evil.example"}}, 403},
		{"a file that is not there", "GET", "/monitor/../monitor.go", nil, 404},
		{"the page's folder", "GET", "/monitor/page", nil, 404},
		{"POST to the page", "POST", "/monitor", [][2]string{asJSON}, 405},
		{"health without a key", "GET", "/health", nil, 200},
		{"system without a key", "GET", "/slipway/system", nil, 401},
		{"events without a key", "GET", "/slipway/events", nil, 401},
		{"requests without a key", "GET", "/slipway/requests", nil, 401},
		{"system", "GET", "/slipway/system", [][2]string{bearer}, 200},
		{"system by a rebound name", "GET", "/slipway/system", [][2]string{bearer, {"Host", "evil.example"}}, 403},
		{"system from another page", "GET", "/slipway/system", [][2]string{bearer, evil}, 403},
		{"reload without a key", "POST", "/slipway/reload", [][2]string{asJSON}, 401},
		{"reload from another page", "POST", "/slipway/reload", [][2]string{bearer, asJSON, evil}, 403},
		{"reload from the API's port", "POST", "/slipway/reload", [][2]string{bearer, asJSON, {"Origin", p.url}}, 403},
		{"reload by a form", "POST", "/slipway/reload", [][2]string{bearer, {"Content-Type", "text/plain"}}, 415},
		{"cancel by a rebound name", "POST", "/slipway/requests/req_0/cancel", [][2]string{
			bearer, asJSON, {"Host", "evil.example"}}, 403},
		{"completions are the API's", "POST", "/v1/chat/completions", [][2]string{bearer, asJSON}, 405},
	} {
		request, err := http.NewRequest(test.method, at+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range test.headers {
			if h[0] == "Host" {
				request.Host = h[1]
			}
			request.Header.Set(h[0], h[1])
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(test.path, "events") {
			io.Copy(io.Discard, response.Body)
		}
		response.Body.Close()
		if response.StatusCode != test.status {
			t.Errorf("%s: status %d, want %d", test.name, response.StatusCode, test.status)
		}
		if test.path == "/monitor" && test.status == 200 {
			for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'",
				"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"} {
				if got := response.Header.Get(name); !strings.Contains(got, want) {
					t.Errorf("%s is %q", name, got)
				}
			}
			if policy := response.Header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") ||
				strings.Contains(policy, "*") || strings.Contains(policy, "http") {
				t.Errorf("the policy lets in too much: %s", policy)
			}
		}
	}
}

func TestMonitorNeedsAFreePortOfItsOwn(t *testing.T) {
	_, at := monitored(t)
	port := at[strings.LastIndex(at, ":")+1:]
	if code, _, errOut := finished(t, "serve", "--model", pocketDir, "--port", "0", "--monitor-port",
		port); code != exitAddress || !strings.Contains(errOut, "for the monitor, cannot be opened") {
		t.Errorf("exit %d: %s", code, errOut)
	}
	for _, port := range []string{"-5", "70000", "18123"} {
		if code, _, errOut := finished(t, "serve", "--model", pocketDir, "--port", "18123", "--monitor-port",
			port); code != exitUsage || !strings.Contains(errOut, "--monitor-port "+port) {
			t.Errorf("%s: exit %d: %s", port, code, errOut)
		}
	}
}

// A damaged launch file is logged once, and everything else is still shown.
func TestDamagedLaunchFileIsLoggedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "launch.json")
	p := serving(t, "--launch-file", file)
	for _, content := range []string{"", "{", `{"schema_version":2}`, `{"schema_version":1,"limit":"a\u001b[31m"}`,
		"{" + strings.Repeat(" ", 70_000) + "}"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if s := getJSON[struct{ Launch any }](t, p.url+"/slipway/system"); s.Launch != nil {
			t.Errorf("%.20q is taken as %v", content, s.Launch)
		}
	}
	if n := strings.Count(p.said(), "the launch file of the installer cannot be read"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	if err := os.WriteFile(file, []byte(launchFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := getJSON[struct{ Launch struct{ Profile string } }](
		t, p.url+"/slipway/system"); s.Launch.Profile != "exact" {
		t.Errorf("%+v", s)
	}
}
