package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway/installer/store"
	"slipway/manifests"
)

// smallHub serves a few small files as a hub serves a pinned revision.
type smallHub struct {
	files    map[string][]byte
	revision manifests.Revision
	requests atomic.Int32
	gated    atomic.Bool
	bytes    atomic.Int64 // of files that were asked for
}

func (h *smallHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.requests.Add(1)
	if h.gated.Load() {
		w.Header().Set("X-Error-Code", "GatedRepo")
		http.Error(w, "gated", http.StatusForbidden)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/models/") {
		var entries []map[string]any
		for name, data := range h.files {
			sum := fmt.Sprintf("%x", sha256.Sum256(data))
			entries = append(entries, map[string]any{"type": "file", "path": name, "size": len(data),
				"oid": strings.Repeat("0", 40),
				"lfs": map[string]any{"oid": sum, "size": len(data), "pointerSize": 130}})
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(entries)
		return
	}
	_, name, _ := strings.Cut(r.URL.Path, "/resolve/"+string(h.revision)+"/")
	data, ok := h.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h.bytes.Add(int64(len(data)))
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	w.Header().Set("X-Repo-Commit", string(h.revision))
	w.Header().Set("ETag", `"`+sum+`"`)
	w.Header().Set("X-Linked-Etag", `"`+sum+`"`)
	w.Header().Set("X-Linked-Size", fmt.Sprint(len(data)))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, path.Base(name), time.Time{}, bytes.NewReader(data))
}

// skipWhereTooSmall ends a test where the refusal is that of a model larger than this machine. That a second window
// does not fit beside the first is no refusal.
func skipWhereTooSmall(t *testing.T, code int, errOut string) {
	t.Helper()
	if code != exitOK && strings.Contains(errOut, "does not fit: ") {
		t.Skip("this machine is too small for the only pinned hub model, so that its set-up is not driven: " + errOut)
	}
}

// A hub model whose file list cannot be had changes nothing; with a list it is downloaded, checked, and not asked for
// again.
func TestSetupOfAHubModel(t *testing.T) {
	t.Parallel()
	const id = "qwen3.8-27b-mtplx-bare-speed"
	m, ok := manifests.ByID(id)
	if !ok {
		t.Fatal("no such manifest")
	}
	r := newRig(t)
	args := []string{"setup", "--yes", "--no-launch", "--model", id}
	code, _, errOut := r.run([]string{"HF_HUB_OFFLINE=1"}, args...)
	skipWhereTooSmall(t, code, errOut)
	if code != exitNetwork || !strings.Contains(errOut, "huggingface.co") ||
		!strings.Contains(errOut, "--model pocket") {
		t.Fatalf("without a list: %d\n%s", code, errOut)
	}
	if _, err := os.Lstat(r.home); err == nil {
		t.Fatal("a home was made")
	}
	if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	small := &smallHub{revision: m.Revision, files: map[string][]byte{"config.json": []byte("{}"),
		"model.safetensors": bytes.Repeat([]byte("weights "), 100_000)}}
	hub := httptest.NewServer(small)
	defer hub.Close()
	// A lock of a model that was never set up does not outlive an uninstall.
	r.lock(m, small.files, manifests.Proven)
	r.clean()
	if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	// Hashes that only the hub vouches for are not covered by --yes.
	r.lock(m, small.files, manifests.Unproven)
	if code, _, errOut := r.run(nil, args...); code != exitConsent || !strings.Contains(errOut, "--accept-told") {
		t.Fatalf("told: %d\n%s", code, errOut)
	}
	r.lock(m, small.files, manifests.Proven)
	env := []string{"HF_ENDPOINT=" + hub.URL, "HF_TOKEN=hf_canary1234567890"}
	if code, _, errOut := r.run(append([]string{"HF_HUB_OFFLINE=1"}, env...), args...); code != exitNetwork {
		t.Fatalf("offline: %d\n%s", code, errOut)
	}
	small.gated.Store(true)
	if code, _, errOut := r.run(env, args...); code != exitAuth || !strings.Contains(errOut, "asks for a token") {
		t.Fatalf("gated: %d\n%s", code, errOut)
	}
	small.gated.Store(false)
	// The plan is open since, so that it continues without a new yes.
	if code, out, errOut := r.run(env, "setup", "--no-launch", "--model", id); code != 0 ||
		!strings.Contains(errOut, "Continuing") {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	installed, err := os.ReadFile(filepath.Join(r.home, store.ModelDir(m.Repo, m.Revision), "model.safetensors"))
	if err != nil || !bytes.Equal(installed, small.files["model.safetensors"]) {
		t.Fatalf("%d bytes, %v", len(installed), err)
	}
	asked := small.requests.Load()
	if code, _, errOut := r.run(env, args...); code != 0 || small.requests.Load() != asked {
		t.Fatalf("again: %d, %d requests more\n%s", code, small.requests.Load()-asked, errOut)
	}
	// One byte flips on the disk, and size and time stay: only hashing sees it, and only the bad file is fetched again.
	flipByte(t, filepath.Join(r.home, store.ModelDir(m.Repo, m.Revision), "model.safetensors"))
	if code, out, _ := r.run(env, "verify", "--deep"); code != exitChanges ||
		!strings.Contains(out, "model.safetensors") {
		t.Fatalf("%d\n%s", code, out)
	}
	if code, _, errOut := r.run(env, append(args, "--deep")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	if code, out, _ := r.run(env, "verify", "--deep"); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	r.adopts(m, small, env, args)
	if found, err := grep(r.home, "hf_canary"); err != nil || found != "" {
		t.Fatalf("the token is in %s (%v)", found, err)
	}
}

// adopts sets the model up again in an empty home, from a folder that has one right file and one of the right size with
// other bytes: the right one is not downloaded, and the folder stays as it is.
func (r *rig) adopts(m manifests.Manifest, small *smallHub, env, args []string) {
	r.t.Helper()
	r.clean()
	if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
		r.t.Fatalf("%d\n%s", code, errOut)
	}
	r.lock(m, small.files, manifests.Proven)
	folder := filepath.Join(r.dir, "weights of mine")
	if err := os.Mkdir(folder, 0o755); err != nil {
		r.t.Fatal(err)
	}
	for name, data := range map[string][]byte{"model.safetensors": small.files["model.safetensors"],
		"config.json": []byte("[]")} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	before, err := maskedTree(folder)
	if err != nil {
		r.t.Fatal(err)
	}
	small.bytes.Store(0)
	code, _, errOut := r.run(env, append(args, "--model-dir", folder)...)
	if code != 0 || !strings.Contains(errOut, "model.safetensors was here already") ||
		!strings.Contains(errOut, "was left alone") {
		r.t.Fatalf("%d\n%s", code, errOut)
	}
	if n := small.bytes.Load(); n > 100 {
		r.t.Fatalf("%d bytes were downloaded", n)
	}
	if after, err := maskedTree(folder); err != nil || after != before {
		r.t.Fatalf("the folder was changed (%v):\n%s", err, after)
	}
	if code, out, _ := r.run(env, "verify", "--deep"); code != 0 {
		r.t.Fatalf("%d\n%s", code, out)
	}
	if code, _, _ := r.run(env, append(args, "--model-dir", filepath.Join(folder, "nowhere"))...); code != exitUsage {
		r.t.Fatalf("a folder that is not there: %d", code)
	}
}

// lock puts a model's lock where `slipway models lock` leaves it.
func (r *rig) lock(m manifests.Manifest, files map[string][]byte, proof manifests.Proof) {
	r.t.Helper()
	lock := manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: m.Repo, Revision: m.Revision,
		Source: "a test"}
	for name, data := range files {
		lock.Files = append(lock.Files, manifests.File{Path: name, Size: int64(len(data)),
			SHA256: manifests.DigestOf(sha256.Sum256(data)), Proof: proof})
	}
	data, err := lock.Marshal()
	if err != nil {
		r.t.Fatal(err)
	}
	file := filepath.Join(r.home, store.LockPath(m.Repo, m.Revision))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// grep finds a file that holds the text, "" when none does.
func grep(dir, text string) (string, error) {
	found := ""
	err := filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(file)
		if bytes.Contains(data, []byte(text)) {
			found = file
		}
		return err
	})
	return found, err
}
