package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"slipway/installer"
	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/profiles"
	"slipway/wire"
)

// What set-up offers before a server is built must be what the server then says of itself.
func TestCapabilitiesAreThoseOfTheRealServersProbe(t *testing.T) {
	cmd := exec.Command("go", "run", "./cmd/slipway-server", "probe")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var p wire.Probe
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatal(err)
	}
	if got, want := profiles.Capabilities(p.Capabilities), installer.Capabilities(machine.System()); !reflect.DeepEqual(
		got, want) {
		t.Fatalf("the server says %+v, set-up offers %+v", got, want)
	}
}

// The whole way with the real server: built from this repository, it answers the first question.
func TestSetupOfTheRealServerAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	env := r.realServer()
	const origin = "http://localhost:3000"
	code, out, errOut := r.run(env, r.setupArgs("--yes", "--allow-origin", origin, "--allow-host", "mac.local")...)
	if code != 0 {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	r.pageAsks(origin, "mac.local")
	if !strings.Contains(out, "It says: Hello") {
		t.Fatalf("it does not greet back:\n%s", out)
	}
	if code, out, _ := r.run(env, "ask", "Hello"); code != 0 || !strings.Contains(out, "Hello") {
		t.Fatalf("%d\n%s", code, out)
	}
	r.oneTruth(env)
	r.watches(env)
	if code, out, errOut := r.run(env, "measure", "--max-tokens", "4"); code != 0 ||
		!strings.Contains(out, "prefill rate") {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	code, out, errOut = r.run(env, "check", "needle", "--json", "--lengths", "600", "--samples", "1", "--max-tokens",
		"128")
	if code != 0 || !strings.Contains(out, `"profile": "`) || !strings.Contains(out,
		filepath.Join(r.home, "checks", "needle-")) {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	if code, out, _ := r.run(env, "cache", "clear", "--yes"); code != exitLocked {
		t.Errorf("what a running server uses is cleared: %d\n%s", code, out)
	}
	if code, out, errOut := r.run(env, "down"); code != 0 || !strings.Contains(out, "has stopped") {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	if code, out, errOut := r.run(env, "cache", "show"); code != 0 || !strings.Contains(out, "restore points, ") {
		t.Errorf("nothing is kept for after a restart: %d\n%s%s", code, out, errOut)
	}
	kept, err := os.Stat(filepath.Join(r.home, plan.CachePath))
	if err != nil || kept.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", kept, err)
	}
	if code, out, errOut := r.run(env, "cache", "clear", "--yes"); code != 0 || !strings.Contains(out, "Deleted ") {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
	if code, out, errOut := r.run(env, "uninstall", "--yes"); code != 0 || strings.Contains(out, `Left: "cache`) {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
	if _, err := os.Stat(filepath.Join(r.home, plan.CachePath)); !os.IsNotExist(err) {
		t.Errorf("the cache stays: %v", err)
	}
}

// realServer is the environment in which set-up builds the real server from this repository.
func (r *rig) realServer() []string {
	r.t.Helper()
	source, err := filepath.Abs("../..")
	if err != nil {
		r.t.Fatal(err)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		r.t.Fatal(err)
	}
	caches := goEnv(r.t, "GOCACHE", "GOMODCACHE", "GOPROXY")
	return []string{"SLIPWAY_SOURCE=" + source, "PATH=" + filepath.Dir(r.slip) + ":" + filepath.Dir(goCommand),
		"GOCACHE=" + caches[0], "GOMODCACHE=" + caches[1], "GOPROXY=" + caches[2]}
}

// pageAsks asks as a page of an allowed origin, by an allowed name and with the key that set-up has made.
func (r *rig) pageAsks(origin, host string) {
	r.t.Helper()
	key, err := os.ReadFile(filepath.Join(r.home, plan.OriginKeyPath))
	if err != nil {
		r.t.Fatal(err)
	}
	for sent, want := range map[string]int{strings.TrimSpace(string(key)): 200, "other": 401} {
		request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/v1/models", r.port), nil)
		if err != nil {
			r.t.Fatal(err)
		}
		request.Host = host
		request.Header.Set("Origin", origin)
		request.Header.Set("Authorization", "Bearer "+sent)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			r.t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want || response.Header.Get("Access-Control-Allow-Origin") != origin {
			r.t.Errorf("a page gets %s, want %d: %v", response.Status, want, response.Header)
		}
	}
}
