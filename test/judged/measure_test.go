package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/checks/measure"
)

type measured struct {
	Text   struct{ SHA256 string }
	Result measure.Result
}

// A server at fault must be named as such, in words a person can act on, and never be given a number that rests on it.
func TestMeasureNamesTheFaultOfTheServer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mode string
		code int
		says string
		not  string // must not be said
	}{
		{mode: "honest", code: 0, says: "over the stream, without the first token", not: "WRONG"},
		{mode: "strict", code: 0, says: "chat_template_kwargs, which the server refuses", not: "WRONG"},
		{mode: "no-usage", code: 0, says: "the server gave no usage", not: "tokens/s"},
		{mode: "one-piece", code: 0, says: "so the time of the first token is unknown", not: "tokens/s  client"},
		{mode: "wrong-prompt", code: 21, says: "WRONG: the server says 776 tokens of prompt, but",
			not: "tokens/s  server"},
		{mode: "wrong-completion", code: 21, says: "bytes of it came", not: "without the first token"},
		{mode: "wrong-pieces", code: 21, says: "pieces of text", not: "without the first token"},
		{mode: "wrong-total", code: 21, says: "tokens in all, but", not: "without the first token"},
		{mode: "cut", code: 21, says: "without saying [DONE], so the answer may be incomplete"},
		{mode: "crash", code: 21, says: "before the stream said [DONE]"},
		{mode: "broke-off", code: 21, says: "broke off after 64 pieces of its answer with an error: the graphics " +
			"processor was lost"},
		{mode: "html", code: 7, says: "answered with a web page (HTML) instead of JSON"},
		{mode: "html-status", code: 21, says: "status 502, and a web page instead of JSON"},
		{mode: "files-only", code: 7, says: "usually ends with /v1", not: "the server's;"},
		{mode: "status-500", code: 21, says: "status 500: the model fell over"},
		{mode: "wrong-shape", code: 21, says: "no chat completion: it has no choices"},
		{mode: "redirect", code: 7, says: "a redirection, which is not followed"},
		{mode: "silent", code: 8, says: "Nothing came from"},
		{mode: "keyed", code: 4, says: "--key-env NAME"},
	} {
		t.Run(row.mode, func(t *testing.T) {
			t.Parallel()
			o := slipway(t, nil, "measure", "--url", double(t, row.mode), "--patience", "2s")
			if all := o.out + o.errOut; o.code != row.code || !strings.Contains(all, row.says) || row.not != "" &&
				strings.Contains(all, row.not) {
				t.Fatalf("want exit code %d, the words %q and not %q\n%v", row.code, row.says, row.not, o)
			}
		})
	}
	t.Run("a file that is not there", func(t *testing.T) {
		if o := slipway(t, nil, "measure", "--file", "lost.txt"); o.code != 2 ||
			!strings.Contains(o.errOut, "--file lost.txt: no such file") {
			t.Fatal(o)
		}
	})
	t.Run("no server", func(t *testing.T) {
		o := slipway(t, nil, "measure", "--url", "http://127.0.0.1:9/v1")
		if o.code != 7 || !strings.Contains(o.errOut, "does not answer") {
			t.Fatal(o)
		}
	})
}

// A cache that is warm must be seen in the numbers, and --fresh must make it cold.
func TestMeasureTellsAWarmCacheFromAColdOne(t *testing.T) {
	t.Parallel()
	at := double(t, "honest")
	warm, code := document[measured](t, "measure", "--url", at, "--repeat", "3")
	if code != 0 || len(warm.Result.Runs) != 3 {
		t.Fatalf("exit code %d, %+v", code, warm)
	}
	for i, r := range warm.Result.Runs {
		if r.Prompt == nil || *r.Prompt != *r.Cached+*r.Computed {
			t.Errorf("run %d: prompt is not cached + computed: %+v", i, r)
		}
		if (*r.Cached > 0) != (i > 0) {
			t.Errorf("run %d has %d cached tokens", i, *r.Cached)
		}
		if i > 0 && r.PrefillRate != nil {
			t.Errorf("run %d has a prefill rate of %d computed tokens", i, *r.Computed)
		}
	}
	for _, spread := range warm.Result.Summary {
		if spread.Group != "warm" || spread.Runs != 2 {
			t.Errorf("cold and warm runs are put together: %+v", spread)
		}
	}
	fresh, _ := document[measured](t, "measure", "--url", at, "--repeat", "3", "--fresh")
	for i, r := range fresh.Result.Runs {
		if *r.Cached > 1 || len(r.Doubts) > 0 { // the mark of the turn
			t.Errorf("fresh run %d has %d cached tokens, %v", i, *r.Cached, r.Doubts)
		}
	}
	if !strings.Contains(fresh.Result.Fresh, "random word") {
		t.Errorf("it does not say how: %q", fresh.Result.Fresh)
	}
	lied, code := document[measured](t, "measure", "--url", double(t, "cached-fresh"), "--fresh")
	if code != 21 || len(lied.Result.Runs[0].Doubts) != 1 {
		t.Errorf("new text that is said to be cached is believed: exit code %d, %+v", code, lied.Result.Runs)
	}
}

// A rate of few tokens, or of a stream that was held back, must not be given.
func TestMeasureGivesNoDecodeRateWhereItMeansNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "long.txt")
	text := strings.Repeat("word and word ", 3000)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := double(t, "honest")
	short, _ := document[measured](t, "measure", "--url", at, "--file", file, "--max-tokens", "16")
	if r := short.Result.Runs[0]; r.DecodeRate != nil || !strings.Contains(r.Absent["decode_tokens_per_second"],
		"needs 16 after the first") {
		t.Errorf("16 tokens: %+v", r)
	}
	enough, _ := document[measured](t, "measure", "--url", at, "--file", file, "--max-tokens", "17")
	if r := enough.Result.Runs[0]; r.DecodeRate == nil || r.Whose["decode_tokens_per_second"] != "client" ||
		*r.DecodeRate <= 0 {
		t.Errorf("17 tokens: %+v", r)
	}
	if sum := sha256.Sum256([]byte(text)); enough.Text.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the file's hash is %s", enough.Text.SHA256)
	}
	// Long prompts are announced in advance.
	f := enough.Result.Forecast
	if f == nil || f.PromptTokens < 8000 || f.PromptTokens > 10000 || f.TokensPerSec <= 0 {
		t.Errorf("forecast: %+v", f)
	}
}

// A wait that a client would not last must be said before the request is sent.
func TestForecastNamesTheTimeoutsThatAreExceeded(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]int{299: 0, 301: 1, 601: 4} {
		if got := len(measure.Exceeded(seconds)); got != want {
			t.Errorf("%v s exceed %d time-outs, want %d", seconds, got, want)
		}
	}
}

// A key must reach the server and nothing else, even where the server repeats it.
func TestMeasureNeverShowsAKey(t *testing.T) {
	t.Parallel()
	at := double(t, "keyed")
	o := slipway(t, []string{"THE_KEY=wrong-secret-value"}, "measure", "--url", at, "--key-env", "THE_KEY")
	if o.code != 4 || strings.Contains(o.String(), "wrong-secret-value") ||
		!strings.Contains(o.errOut, "the key (key) is wrong") {
		t.Fatal(o)
	}
	o = slipway(t, []string{"THE_KEY=right-key"}, "measure", "--url", at, "--key-env", "THE_KEY")
	if o.code != 0 || strings.Contains(o.String(), "right-key") {
		t.Fatal(o)
	}
}

// watched is what the server tells of its requests to those who watch it, the latest first.
type watched struct {
	Requests []struct {
		Prompt     int `json:"prompt_tokens"`
		Cached     int `json:"cached_tokens"`
		Computed   int `json:"computed_tokens"`
		Completion int `json:"completion_tokens"`
	}
}

// The real server's own numbers are taken as its own, and are those that it tells to the monitor.
func TestMeasureOfTheRealServerAddsUp(t *testing.T) {
	t.Parallel()
	at := pocket(t)
	m, code := document[measured](t, "measure", "--url", at, "--fresh", "--max-tokens", "24", "--repeat", "2")
	if code != 0 {
		t.Fatalf("exit code %d, %+v", code, m)
	}
	response, err := http.Get(strings.TrimSuffix(at, "/v1") + "/slipway/requests")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var shown watched
	if err := json.NewDecoder(response.Body).Decode(&shown); err != nil || len(shown.Requests) != 2 {
		t.Fatalf("%v, %+v", err, shown)
	}
	for i, r := range m.Result.Runs {
		if same := shown.Requests[1-i]; *r.Prompt != same.Prompt || *r.Cached != same.Cached ||
			*r.Computed != same.Computed || *r.Completion != same.Completion {
			t.Errorf("measure says %d = %d + %d and %d, the monitor %+v", *r.Prompt, *r.Cached, *r.Computed,
				*r.Completion, same)
		}
		if r.Prompt == nil || *r.Prompt != *r.Cached+*r.Computed || *r.Computed < 500 || r.Prefill == nil ||
			r.Whose["prefill_seconds"] != "server" || r.DecodeRate == nil || len(r.Doubts) > 0 {
			t.Errorf("%+v", r)
		}
		if *r.FirstToken < *r.Prefill {
			t.Errorf("the client saw the first token after %v s, before the server's %v s of prefill had passed",
				*r.FirstToken, *r.Prefill)
		}
	}
}
