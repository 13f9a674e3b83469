package hub

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	testhub "slipway/test/hub"
)

func TestRefusalsAreDistinguished(t *testing.T) {
	stranger := "hf_strangerstoken99999999"
	rows := map[string]struct {
		change func(*kit)
		kind   AccessKind
		page   string
	}{
		"gated, no token":   {func(k *kit) { k.repo.Gated = true }, Gated, "/org/model"},
		"private, no token": {func(k *kit) { k.repo.Private = true }, Hidden, ""},
		"private, unknown token": {func(k *kit) { k.repo.Private = true; k.config.Token = stranger }, BadToken,
			"/settings/tokens"},
		"gated, unknown token": {func(k *kit) { k.repo.Gated = true; k.config.Token = stranger }, BadToken,
			"/settings/tokens"},
		"disabled": {func(k *kit) { k.repo.Disabled = true; k.config.Token = k.hub.Token }, Disabled, ""},
		"gated, token without agreement": {func(k *kit) {
			k.config.Token = k.hub.Token
			k.hub.Script(testhub.Fault{Place: testhub.Tree, Kind: testhub.Status, Status: 403, Times: -1,
				Header: map[string]string{"X-Error-Code": "GatedRepo", "X-Error-Message": "ask \u202efirst"}})
		}, Gated, "/org/model"},
		"a mirror that asks for a token": {func(k *kit) {
			k.repo.Gated, k.config.Endpoint, k.config.Origin, k.config.Token = true, k.hub.URL, DefaultOrigin,
				k.hub.Token
		}, MirrorNoKey, ""},
		"a mirror that says disabled": {func(k *kit) {
			k.repo.Disabled, k.config.Endpoint, k.config.Origin, k.config.Token = true, k.hub.URL, DefaultOrigin,
				k.hub.Token
		}, Disabled, ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			row.change(k)
			err := k.download(within(t, time.Minute))
			var access *AccessError
			if !errors.As(err, &access) || access.Kind != row.kind {
				t.Fatalf("got %v, want %q", err, row.kind)
			}
			if !strings.Contains(err.Error(), row.page) {
				t.Errorf("%q does not name the page %q", err, row.page)
			}
			if strings.ContainsAny(err.Error(), "\x1b\u202e") {
				t.Errorf("the hub's control characters reach the terminal: %q", err)
			}
			k.nothingWrong()
		})
	}
}

func TestStaleTokenOnAPublicRepository(t *testing.T) {
	k := newKit(t)
	k.config.Token = "hf_stale00000000000000"
	c := k.client()
	if err := k.downloadWith(within(t, time.Minute), c, k.repo.Lock()); err != nil {
		t.Fatal(err)
	}
	k.whole()
	told := 0
	for _, why := range k.said(Notice) {
		if strings.Contains(why, "does not accept the token in HF_TOKEN") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times that the token is stale: %q", told, k.said(Notice))
	}
}

func TestGatedRepositoryWithItsToken(t *testing.T) {
	k := newKit(t)
	k.repo.Gated, k.config.Token = true, k.hub.Token
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	k.whole()
	for _, seen := range k.hub.Log() {
		if seen.Place == testhub.CDN && seen.Authorization != "" {
			t.Fatal("the CDN saw the token: same host name, another port")
		}
	}
}

func TestRedirectsThatAreRefused(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("another host saw the token")
		}
		http.Error(w, "no", 404)
	}))
	defer elsewhere.Close()
	for name, row := range map[string]struct {
		to    string
		fatal bool
	}{
		"to another host and port":       {elsewhere.URL + "/x?Signature=secret", false},
		"to a file":                      {"file:///etc/passwd", true},
		"with a user name":               {"http://user:pass@127.0.0.1:1/", true},
		"in a circle":                    {"SELF", true},
		"to a host that does not answer": {"http://127.0.0.1:1/x?Signature=secret", false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.config.Token = k.hub.Token
			to := row.to
			if to == "SELF" {
				to = "?round=and"
			}
			k.hub.Script(testhub.Fault{Place: testhub.Resolve, Kind: testhub.Redirect, Text: to, Times: -1,
				Header: map[string]string{"X-Repo-Commit": string(k.repo.Revision)}})
			err := k.download(within(t, time.Minute))
			var refused *RedirectError
			if err == nil || errors.As(err, &refused) != row.fatal {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "pass@") {
				t.Errorf("a secret is shown: %v", err)
			}
			k.nothingWrong()
		})
	}
}

func TestHTTPSIsNeverLeft(t *testing.T) {
	plainSide := httptest.NewServer(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) {
			t.Error("asked over http")
		}))
	defer plainSide.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plainSide.URL+"/x", http.StatusFound)
	}))
	defer secure.Close()
	c, err := New(Config{Origin: secure.URL})
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = secure.Client().Transport
	_, _, err = c.get(t.Context(), secure.URL, http.Header{}, nil)
	var refused *RedirectError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
}

func TestProxyIsUsed(t *testing.T) {
	k := newKit(t)
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Error(w, "the proxy wants a password", http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	config := ConfigFromEnv(func(name string) string {
		return map[string]string{"HTTP_PROXY": strings.Replace(proxy.URL, "//", "//me:secretword@", 1),
			"HF_ENDPOINT": "http://hub.invalid", "HOME": t.TempDir()}[name]
	})
	config.Sleep = k.config.Sleep
	k.config = config
	err := k.download(within(t, time.Minute))
	if err == nil || asked.Load() == 0 {
		t.Fatalf("the proxy was asked %d times: %v", asked.Load(), err)
	}
	if strings.Contains(err.Error(), "secretword") {
		t.Errorf("the proxy's password is shown: %v", err)
	}
}

// A proxy that cannot be read is not passed by: the hub would be asked directly.
func TestUnreadableProxyIsRefused(t *testing.T) {
	for value, readable := range map[string]bool{"": true, "proxy:3128": true, "http://me:word@proxy:3128": true,
		"socks5://proxy": true, "::x": false, "ht tp://secretword": false} {
		for _, name := range []string{"HTTP_PROXY", "https_proxy"} {
			_, err := New(ConfigFromEnv(func(n string) string {
				return map[string]string{name: value, "HOME": t.TempDir()}[n]
			}))
			var bad *ProxyError
			if errors.As(err, &bad) == readable || (!readable && (bad.Setting != name ||
				strings.Contains(err.Error(), "secretword"))) {
				t.Errorf("%s=%q: %v", name, value, err)
			}
		}
	}
}

func TestTokenComesFromWhereTheHubsToolsKeepIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".cache/huggingface"), 0o700); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir, ".cache/huggingface/token"), []byte("hf_fromfile\n"), 0o600)
	os.WriteFile(filepath.Join(dir, "other"), []byte("hf_fromother"), 0o600)
	rows := map[string]struct {
		env  map[string]string
		want string
	}{
		"environment first": {map[string]string{"HF_TOKEN": "hf_env", "HUGGING_FACE_HUB_TOKEN": "hf_old"},
			"hf_env"},
		"older name":             {map[string]string{"HUGGING_FACE_HUB_TOKEN": "hf_old"}, "hf_old"},
		"named file":             {map[string]string{"HF_TOKEN_PATH": filepath.Join(dir, "other")}, "hf_fromother"},
		"default file":           {map[string]string{}, "hf_fromfile"},
		"HF_HOME without a file": {map[string]string{"HF_HOME": filepath.Join(dir, "nothing")}, ""},
		"switched off":           {map[string]string{"HF_TOKEN": "hf_env", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}, ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			row.env["HOME"] = dir
			if got := ConfigFromEnv(func(name string) string { return row.env[name] }).Token; got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestOfflineAsksNothing(t *testing.T) {
	k := newKit(t)
	k.config.Offline = true
	if err := k.download(within(t, time.Minute)); !errors.Is(err, ErrOffline) {
		t.Fatalf("got %v", err)
	}
	if len(k.hub.Log()) != 0 {
		t.Error("asked")
	}
}

// served is how many requests for bytes were answered.
func (k *kit) served() (n int) {
	for _, seen := range k.hub.Log() {
		if seen.Place == testhub.CDN {
			n++
		}
	}
	return n
}

// The canary: a token in the environment and signed addresses, through success, failure, kill and crash dump; it must
// be in nothing that was said or written.
func TestTokenIsInNoOutput(t *testing.T) {
	const canary = "hf_CanaryCanaryCanary1234567890"
	outcomes := map[string]struct {
		fault testhub.Fault
		kill  os.Signal
		after int // requests for bytes that were answered
	}{
		"success": {},
		"network error": {fault: testhub.Fault{Place: testhub.CDN, Kind: testhub.Cut, After: 1000, Times: -1},
			kill: syscall.SIGTERM, after: 5}, // four connections, so one has tried again
		"refusal": {fault: testhub.Fault{Place: testhub.Resolve, Kind: testhub.Status, Status: 403, Times: -1,
			Header: map[string]string{"X-Error-Message": "token " + canary + " at http://x/y?Signature=abc"}}},
		"crash dump": {fault: testhub.Fault{Place: testhub.CDN, Kind: testhub.Stall, After: 300_000, Times: -1},
			kill: sigQuit},
		"wrong bytes": {fault: testhub.Fault{Place: testhub.CDN, Kind: testhub.WrongBytes, After: 5, Times: -1}},
		"killed at once": {fault: testhub.Fault{Place: testhub.CDN, Kind: testhub.Stall, After: 300_000, Times: -1},
			kill: os.Kill},
	}
	for name, row := range outcomes {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.hub.Token = canary
			k.repo.Gated = true
			if row.fault.Kind != "" {
				k.hub.Script(row.fault)
			}
			cmd := k.child("HF_TOKEN="+canary, "SLIPWAY_TEST_TALK=1")
			file, err := os.Create(filepath.Join(t.TempDir(), "said"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			cmd.Stdout, cmd.Stderr = file, file
			var served atomic.Bool
			k.hub.OnServed(func(int64) { served.Store(true) })
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { cmd.Wait(); close(ended) }()
			for row.kill != nil { // once it is at work and has said something
				if info, err := file.Stat(); err != nil {
					t.Fatal(err)
				} else if served.Load() && info.Size() > 0 && k.served() >= row.after {
					cmd.Process.Signal(row.kill)
					break
				}
				select {
				case <-ended:
					t.Fatal("the run ended before its signal")
				case <-time.After(5 * time.Millisecond):
				}
			}
			<-ended
			out, err := os.ReadFile(file.Name())
			if err != nil || len(out) == 0 {
				t.Fatalf("the run said nothing, so that this test would see nothing: %v", err)
			}
			used := false
			for _, seen := range k.hub.Log() {
				used = used || strings.Contains(seen.Authorization, canary)
			}
			if !used {
				t.Fatal("the token was never used: this test would see nothing")
			}
			for _, secret := range []string{canary, "Signature=", "X-Amz-"} {
				if i := bytes.Index(out, []byte(secret)); i >= 0 {
					t.Errorf("%q was said: ...%s", secret, out[max(0, i-80):i+len(secret)])
				}
			}
			filepath.WalkDir(k.home.Name(), func(path string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".part") {
					data, _ := os.ReadFile(path)
					for _, secret := range []string{canary, "Signature=", "X-Amz-"} {
						if bytes.Contains(data, []byte(secret)) {
							t.Errorf("%s holds %q", path, secret)
						}
					}
				}
				return nil
			})
		})
	}
}
