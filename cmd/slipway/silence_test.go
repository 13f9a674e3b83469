package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"slipway/manifests"
	testhub "slipway/test/hub"
)

// The doubles here are slow until a file lets them go on, so that nothing rests on how long they take.

// speaks runs slipway, waits until its standard error matches, lets the double go on, and gives what was said. The
// command must end well.
func (r *rig) speaks(env []string, pattern string, goOn func(), args ...string) string {
	r.t.Helper()
	cmd := r.command(env, args...)
	said := &watched{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	wanted := regexp.MustCompile(pattern)
	var early error
	r.until("it says "+pattern, func() bool {
		select {
		case early = <-ended:
			ended <- early
			return true
		default:
			return wanted.MatchString(said.text())
		}
	})
	if !wanted.MatchString(said.text()) {
		r.t.Fatalf("it ended (%v) and never said %s:\n%s", early, pattern, said.text())
	}
	goOn()
	if err := <-ended; err != nil {
		r.t.Fatalf("%v\n%s", err, said.text())
	}
	return said.text()
}

func (r *rig) touch(name string) {
	r.t.Helper()
	if err := os.WriteFile(name, []byte("slow\n"), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) remove(name string) func() {
	return func() {
		if err := os.Remove(name); err != nil {
			r.t.Error(err)
		}
	}
}

// While a slow compiler works it is said what is done, how long so far, and about how long it takes; as an event too.
func TestSlowCompilerIsNotSilent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		flags   []string
		pattern string
	}{
		"words": {nil, `\n  Compiling the server: \d+ s so far \(up to 3 min\)\n`},
		"events": {[]string{"--json", "--events", "ndjson"},
			`\{"event":"waiting","action":"engine","text":"Compiling the server","seconds":\d+,"usual":"up to 3 min"\}\n`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			held, tools := filepath.Join(r.dir, "held"), filepath.Join(r.dir, "tools")
			r.touch(held)
			slowGo(t, tools, held)
			source, err := filepath.Abs("testdata/source")
			if err != nil {
				t.Fatal(err)
			}
			env := []string{"TEST_BARE_MACHINE=", "PATH=" + tools + ":/usr/bin:/bin", "SLIPWAY_SOURCE=" + source}
			for i, value := range goEnv(t, "GOCACHE", "GOMODCACHE", "GOPROXY") {
				env = append(env, []string{"GOCACHE=", "GOMODCACHE=", "GOPROXY="}[i]+value)
			}
			args := r.setupArgs(append([]string{"--yes", "--no-launch"}, row.flags...)...)
			r.speaks(env, row.pattern, r.remove(held), args...)
		})
	}
}

// slowGo is a go command that builds only when the file is gone.
func slowGo(t *testing.T, dir, held string) {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = build ]; then while [ -e %s ]; do sleep 0.05; done; fi\nexec "+
		"%s \"$@\"\n",
		shellWords([]string{held}), shellWords([]string{real}))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// While a server loads its model, and while a model thinks about its first answer, it is said how long so far.
func TestSlowServerIsNotSilent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	fault, hold := filepath.Join(r.home, "fault"), filepath.Join(r.home, "hold")
	r.touch(fault)
	r.touch(hold)
	r.speaks(nil, `\n  Loading the model: \d+ s so far`, func() {
		r.remove(fault)()
		r.remove(hold)()
	}, "up")
	r.touch(hold)
	r.speaks(nil, `\n?  Waiting for the answer: \d+ s so far\n`, r.remove(hold), "ask", "Hello")
	r.touch(hold)
	r.speaks(nil, `  Waiting for the first answer: \d+ s so far`, r.remove(hold), r.setupArgs("--yes")...)
}

// A hub that does not answer is named while it is waited for.
func TestSlowHubIsNotSilent(t *testing.T) {
	t.Parallel()
	hub, revisions := threeModels(t)
	r, at := onMac(t, "m1-16", revisions)
	held := make(chan struct{})
	proxy := holdingProxy(t, hub.URL, held)
	said := r.speaks(at(proxy), `\n  Waiting for 127\.0\.0\.1:\d+: \d+ s so far`, func() { close(held) },
		r.setupArgs("--yes", "--no-launch")...)
	if !strings.Contains(said, "\n  2 files, 200 kB, every hash proven.\n") {
		t.Errorf("it is not said what the list is worth:\n%s", said)
	}
	if strings.Contains(said, "s left") {
		t.Errorf("a time left is said for a few kilobytes:\n%s", said)
	}
}

// A download says how much of all of it is here, how fast it comes, and how long it still takes.
func TestDownloadSaysTheTotalAndTheTimeLeft(t *testing.T) {
	t.Parallel()
	hub, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	m, _ := manifests.ByID("qwen3.5-4b-4bit")
	repo, err := hub.Add(m.Repo, testhub.File{Path: "config.json", Content: testhub.Bytes([]byte("{}"))},
		testhub.File{Path: "model-00001-of-00002.safetensors", Content: testhub.Pattern(1, 40_000_000), LFS: true},
		testhub.File{Path: "model-00002-of-00002.safetensors", Content: testhub.Pattern(2, 50_000_000), LFS: true})
	if err != nil {
		t.Fatal(err)
	}
	r, at := onMac(t, "m1-16", m.ID+"="+string(repo.Revision))
	args := r.setupArgs("--yes", "--no-launch", "--model", m.ID, "--limit-rate", "25MB")
	code, _, errOut := r.run(at(hub.URL), args...)
	if code != 0 || !regexp.MustCompile(`\n  \d\d\.\d MB of 90\.0 MB, [0-9.]+ MB/s, \d+ s left\n`).MatchString(errOut) {
		t.Errorf("%d\n%s", code, errOut)
	}
	if strings.Contains(errOut, "model-00001") {
		t.Errorf("single files are listed without --verbose:\n%s", errOut)
	}
}

// holdingProxy passes everything on to a hub, once it is let go.
func holdingProxy(t *testing.T, hub string, held <-chan struct{}) string {
	t.Helper()
	to, err := url.Parse(hub)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
