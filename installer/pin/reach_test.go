package pin_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"slipway/installer/hub"
	"slipway/installer/pin"
	"slipway/manifests"
	testhub "slipway/test/hub"
)

// A proxy that does not answer: the network's fault, and nothing that a person could consent to.
func TestDeadProxyIsNoQuestionOfTrust(t *testing.T) {
	server, repo := serve(t)
	dead := &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	for name, config := range map[string]hub.Config{"the hub": {Origin: server.URL}, "a mirror": {
		Endpoint: server.URL}} {
		t.Run(name, func(t *testing.T) {
			config.Proxy = func(*http.Request) (*url.URL, error) { return dead, nil }
			var told []string
			config.Notify = func(e hub.Event) { told = append(told, e.Why) }
			_, _, err := pin.Lock(t.Context(), client(t, config), pin.Ask{Repo: repo.Name, Revision: repo.Revision})
			var way *hub.WayError
			var word *pin.UnprovenError
			if !errors.As(err, &way) || way.Kind != hub.ClosedProxy || errors.As(err, &word) {
				t.Fatalf("got %v", err)
			}
			if len(told) != 0 {
				t.Errorf("it is tried again: %q", told)
			}
		})
	}
}

func TestGatedRepositoryBehindAMirror(t *testing.T) {
	server, repo := serve(t)
	repo.Gated = true
	_, _, err := pin.Lock(t.Context(), client(t, hub.Config{Endpoint: server.URL, Token: server.Token}),
		pin.Ask{Repo: repo.Name, Revision: repo.Revision})
	var access *hub.AccessError
	if !errors.As(err, &access) || access.Kind != hub.MirrorNoKey {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); strings.ContainsAny(text, "{}") || !strings.Contains(text, "HF_ENDPOINT") ||
		!strings.Contains(text, "huggingface.co/"+repo.Name) {
		t.Errorf("it does not say what to do: %s", text)
	}
}

// The git side fails with a page or a document: its text is not the user's business.
func TestGitSideThatFailsShowsNoDocument(t *testing.T) {
	server, repo := serve(t)
	server.Script(testhub.Fault{Place: testhub.Git, Kind: testhub.Status, Status: 500, Text: `{"error":"internal"}`,
		Times: -1})
	_, _, err := pin.Lock(t.Context(), client(t, hub.Config{Origin: server.URL}),
		pin.Ask{Repo: repo.Name, Revision: repo.Revision})
	var told *pin.UnprovenError
	if !errors.As(err, &told) || strings.ContainsAny(err.Error(), "{}") ||
		!strings.Contains(err.Error(), "status 500") {
		t.Fatalf("got %v", err)
	}
}

// What a repository may hold and no lock can: each is the repository's fault, in a sentence.
func TestRepositoriesThatNoLockCanName(t *testing.T) {
	small := testhub.Bytes([]byte("1"))
	var many []testhub.File
	for i := range 10_001 {
		many = append(many, testhub.File{Path: fmt.Sprintf("%05d", i), Content: small})
	}
	for name, row := range map[string]struct {
		files []testhub.File
		says  string
	}{
		"a control character": {[]testhub.File{{Path: "a\x01b", Content: small}}, "control character"},
		"a line separator":    {[]testhub.File{{Path: "a\u2028b", Content: small}}, "line separator"},
		"a backslash":         {[]testhub.File{{Path: `a\b`, Content: small}}, "backslash"},
		"no UTF-8":            {[]testhub.File{{Path: "a\xff", Content: small}}, "not UTF-8"},
		"two that are one": {[]testhub.File{{Path: "A", Content: small}, {Path: "a", Content: small}},
			"one file where case does not count"},
		"too many": {many, "10001 entries"},
		"200 folders deep": {[]testhub.File{{Path: strings.Repeat("d/", 200) + "x", Content: small}},
			"more than 64 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := testhub.Start(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			repo, err := server.Add("org/model", row.files...)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = pin.Lock(t.Context(), client(t, hub.Config{Origin: server.URL}),
				pin.Ask{Repo: repo.Name, Revision: repo.Revision})
			var unusable *pin.UnusableError
			if !errors.As(err, &unusable) || !strings.Contains(err.Error(), row.says) ||
				!strings.HasPrefix(err.Error(), "the repository cannot be installed") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// An address at which no hub is, or none with this model, is told as such, and not as a question of trust.
func TestMirrorWithoutTheModelIsToldAsSuch(t *testing.T) {
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"nothing there": {http.NotFound, "there is no org/model (status 404). Look at HF_ENDPOINT, or unset it"},
		"another service": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("{}"))
		}, "does not answer like a model hub"},
	} {
		server := httptest.NewServer(row.answer)
		defer server.Close()
		_, _, err := pin.Lock(t.Context(), client(t, hub.Config{Endpoint: server.URL, EndpointFrom: "HF_ENDPOINT"}),
			pin.Ask{Repo: "org/model", Revision: manifests.Revision(strings.Repeat("1", 40))})
		var not *hub.NotAHubError
		if !errors.As(err, &not) || !strings.Contains(err.Error(), row.says) ||
			strings.Contains(err.Error(), "pkt-len") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
