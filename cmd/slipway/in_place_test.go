package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/installer/answers"
	"slipway/installer/store"
	"slipway/manifests"
	testhub "slipway/test/hub"
)

// A model used in place: nothing is downloaded or copied, the folder stays as it is to the last byte and time, also
// after uninstall, and a file that is not what it was is named before every launch.
func TestModelUsedInPlaceIsNeitherCopiedNorTouchedAndCheckedAtLaunch(t *testing.T) {
	t.Parallel()
	const id = "qwen3.8-27b-mtplx-bare-speed"
	m, ok := manifests.ByID(id)
	if !ok {
		t.Fatal("no such manifest")
	}
	r := newRig(t)
	if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	small := &smallHub{revision: m.Revision, files: map[string][]byte{"config.json": []byte("{}"),
		"model.safetensors": bytes.Repeat([]byte("weights "), 100_000)}}
	hub := httptest.NewServer(small)
	defer hub.Close()
	env := []string{"HF_ENDPOINT=" + hub.URL}
	r.lock(m, small.files, manifests.Proven)
	folder := filepath.Join(r.dir, "weights of mine")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join(folder, "model.safetensors")
	for name, data := range small.files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	before, err := maskedTree(folder)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"setup", "--yes", "--no-launch", "--model", id, "--in-place"}
	code, _, errOut := r.run(env, args...)
	skipWhereTooSmall(t, code, errOut)
	if code != exitUsage || !strings.Contains(errOut, "--model-dir") {
		t.Fatalf("no folder was named and none was found: %d\n%s", code, errOut)
	}
	code, out, errOut := r.run(env, append(args, "--model-dir", folder)...)
	if code != 0 || !strings.Contains(errOut, "must stay as it is") {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	if n := small.requests.Load(); n != 0 {
		t.Errorf("the hub was asked %d times", n)
	}
	if _, err := os.Lstat(filepath.Join(r.home, store.ModelDir(m.Repo, m.Revision))); err == nil {
		t.Error("a copy was made")
	}
	for _, deep := range []string{"--deep=false", "--deep"} {
		if code, out, _ := r.run(env, "verify", deep); code != 0 {
			t.Fatalf("%s: %d\n%s", deep, code, out)
		}
	}
	if code, _, errOut := r.run(env, "setup", "--no-launch"); code != 0 ||
		!strings.Contains(errOut, "nothing was changed") {
		t.Fatalf("again: %d\n%s", code, errOut)
	}
	flipByte(t, weights) // size, inode and time stay
	if code, out, _ := r.run(env, "verify", "--deep"); code != exitChanges || !strings.Contains(out, weights) {
		t.Fatalf("%d\n%s", code, out)
	}
	flipByte(t, weights)
	if after, err := maskedTree(folder); err != nil || after != before {
		t.Fatalf("the folder was changed (%v):\n%s", err, after)
	}
	if err := os.Truncate(weights, 100); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := r.run(env, "verify"); code != exitChanges || !strings.Contains(out, weights) {
		t.Fatalf("%d\n%s", code, out)
	}
	if code, _, errOut := r.run(env, "up"); code != exitChanges || !strings.Contains(errOut, weights) {
		t.Fatalf("a cut file is launched: %d\n%s", code, errOut)
	}
	before, _ = maskedTree(folder)
	if code, _, errOut := r.run(env, "uninstall", "--yes"); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	if after, err := maskedTree(folder); err != nil || after != before {
		t.Fatalf("uninstall changed the folder (%v):\n%s", err, after)
	}
	if _, err := os.Lstat(r.home); err == nil {
		found, _ := maskedTree(r.home)
		t.Fatalf("left in the home:\n%s", found)
	}
}

// Weights that are here can be used in place although the model's file list is not known yet: the list is got by the
// command that is printed, and then the same command works.
func TestInPlaceWithoutAFileListNamesTheCommandThatGetsIt(t *testing.T) {
	t.Parallel()
	hub, revisions := threeModels(t)
	r, at := onMac(t, "m4-max-36", revisions)
	const id = "qwen3.5-4b-4bit"
	folder := filepath.Join(r.dir, "weights of mine")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	index := slices.IndexFunc(manifests.All(), func(m manifests.Manifest) bool { return m.ID == id })
	weights, err := io.ReadAll(io.NewSectionReader(testhub.Pattern(uint64(index+1), 200_000), 0, 200_000))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"config.json": []byte("{}"), "model.safetensors": weights} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"setup", "--yes", "--json", "--model", id, "--in-place", "--model-dir", folder}
	code, out, errOut := r.run(at(hub.URL), args...)
	var e answers.Envelope
	if err := json.Unmarshal([]byte(out), &e); err != nil || code != exitNotReady || e.Error == nil ||
		!strings.Contains(e.Error.Message, "file list of "+id+" is not known yet") || len(e.Error.Next) < 2 {
		t.Fatalf("%d %v\n%s%s", code, err, out, errOut)
	}
	if code, _, errOut := r.run(at(hub.URL), e.Error.Next[1:]...); code != 0 {
		t.Fatalf("%v: %d\n%s", e.Error.Next, code, errOut)
	}
	hub.Forget()
	if code, out, errOut := r.run(at(hub.URL), args...); code != 0 || len(hub.Log()) > 0 {
		t.Fatalf("%d, %d requests\n%s%s", code, len(hub.Log()), out, errOut)
	}
	code, out, _ = r.run(at(hub.URL), "setup", "--yes", "--model", "pocket", "--in-place")
	if code != exitUsage {
		t.Errorf("the embedded model: %d\n%s", code, out)
	}
}
