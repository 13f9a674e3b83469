package host

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"slipway/engine/memory"
)

type watchedRequest struct {
	Prompt     int `json:"prompt_tokens"`
	Cached     int `json:"cached_tokens"`
	Computed   int `json:"computed_tokens"`
	Recomputed struct {
		Known    int `json:"known_tokens"`
		Again    int `json:"again_tokens"`
		Because  string
		Volatile bool
		Advice   string
		Snippet  *struct{ Before, Old, New string }
	}
}

// requests are those that the server tells, the latest first.
func (k *kept) requests() []watchedRequest {
	k.t.Helper()
	response, err := http.Get(k.URL + "/slipway/requests")
	if err != nil {
		k.t.Fatal(err)
	}
	defer response.Body.Close()
	var w struct{ Requests []watchedRequest }
	if err := json.NewDecoder(response.Body).Decode(&w); err != nil || response.StatusCode != http.StatusOK {
		k.t.Fatal(response.StatusCode, err)
	}
	return w.Requests
}

func TestMonitorSaysWhyAPromptMissedWithItsTextOnlyOnLoopback(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		k := startKept(t, func(s *Settings) { s.Address = netip.MustParseAddrPort(address).Addr() })
		rules := k.document(13, 300)
		var last asked
		for i := range 4 {
			last = k.ask([]message{system(fmt.Sprintf("Request id: %08x. %s", 0x1a2b3c4d+i*0x01234567, rules)),
				user("Hello.")}, message{"max_tokens": 2})
		}
		r := k.requests()[0]
		if r.Prompt != last.prompt || r.Computed != last.computed || r.Cached != last.prompt-last.computed {
			t.Errorf("the watcher sees %+v, the client %+v", r, last)
		}
		if w := r.Recomputed; !w.Volatile || !strings.Contains(w.Advice, "normalize") {
			t.Errorf("shown %+v", w)
		}
		switch s := r.Recomputed.Snippet; {
		case address == "0.0.0.0:0" && s != nil:
			t.Errorf("beyond loopback the prompt's text is shown: %+v", s)
		case address == "127.0.0.1:0" && (s == nil || !strings.Contains(s.Before, "Request id") || s.Old == s.New):
			t.Errorf("the differing text is not shown: %+v", s)
		}
		k.stop()
	}
}

func TestMonitorNamesTheProfile(t *testing.T) {
	k := startKept(t, func(s *Settings) { s.Profile = "balanced" })
	response, err := http.Get(k.URL + "/slipway/requests")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var w struct{ Server struct{ Profile string } }
	if err := json.NewDecoder(response.Body).Decode(&w); err != nil || w.Server.Profile != "balanced" {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestReloadDropsEveryPoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	k := startKept(t, func(s *Settings) { s.CacheDisk = dir })
	conversation := []message{user(k.document(31, 600) + "\nWhat is it about?")}
	before := k.ask(conversation, nil)
	response, err := http.Post(k.URL+"/slipway/reload", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.StatusCode)
	}
	for tier, name := range map[memory.Tier]string{memory.InMemory: "memory", memory.OnDisk: "disk"} {
		if u := k.host.keeper.Usage(tier); u.TotalBytes != 0 || u.Points != 0 {
			t.Errorf("in %s is left %+v", name, u)
		}
	}
	after := k.ask(conversation, nil)
	if after.computed != after.prompt || after.content != before.content {
		t.Errorf("after the reload %d of %d tokens were computed, %q is answered, before it %q", after.computed,
			after.prompt, after.content, before.content)
	}
	again := k.ask(conversation, nil)
	k.atMost("once more", again, slack)
}
