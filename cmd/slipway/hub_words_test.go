package main

import (
	"bytes"
	"crypto/sha256"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/operate"
	"slipway/installer/pin"
	"slipway/installer/store"
	"slipway/manifests"
)

// What the hub, its mirror, the way to it or the user's settings did wrong has its own class and sentence, and is never
// called a fault of slipway.
func TestErrorsOfOthersAreNotCalledOurs(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		code int
		says string
	}{
		"https left for http": {&hub.RedirectError{From: "https://a", To: "http://b", Why: "it leaves https"},
			exitDamage, "Nothing was taken from there"},
		"HF_ENDPOINT is no address": {&hub.AddressError{Setting: "HF_ENDPOINT", Address: "ftp://x"}, exitUsage,
			"HF_ENDPOINT"},
		"proxy is no address":     {&hub.ProxyError{Setting: "HTTP_PROXY"}, exitUsage, "HTTP_PROXY"},
		"told to stay offline":    {&hub.NetworkError{Err: hub.ErrOffline}, exitNetwork, "HF_HUB_OFFLINE"},
		"token with a line break": {&hub.AccessError{Kind: hub.TokenShape, Subject: "HF_TOKEN"}, exitAuth, "HF_TOKEN"},
		"two files that are one": {&pin.UnusableError{Err: &manifests.LockError{Field: "files[1].path", Why: "x"}},
			exitDamage, "cannot be installed"},
		"lock that does not hold": {&manifests.LockError{Field: "files[1].path", Why: "x"}, exitDamage,
			"Lock the model again"},
		"hub's list is hostile": {&hub.HostileError{What: "its pages do not end"}, exitDamage, "refused"},
		"gated behind a mirror": {&hub.AccessError{Kind: hub.MirrorNoKey, Subject: "org/model",
			Page: "https://huggingface.co/org/model"}, exitAuth, "Unset HF_ENDPOINT"},
		"mirror without a proof": {&pin.UnprovenError{Reason: hub.ErrOffline, Mirror: true}, exitHuman,
			"Unset HF_ENDPOINT"},
		"used in place and changed": {&store.MovedError{Path: "/x/model.safetensors", Why: "has changed"}, exitChanges,
			"must stay as it is"},
		"folder that is being filled": {&store.PullInProgressError{Folder: "/x"}, exitLocked, "Wait"},
	} {
		f := explain(&apply.ActionError{Action: "model", Err: row.err})
		if f.Code != row.code || !strings.Contains(f.Error(), row.says) ||
			strings.Contains(f.Error(), "fault of slipway") {
			t.Errorf("%s: %d %s", name, f.Code, f.Error())
		}
	}
}

// A bundle is the suspect, not the lock that is known here: nobody is told to replace the lock or to try the same
// again.
func TestBadBundleIsTheSuspect(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		code int
		says string
	}{
		"flipped byte": {&store.IntegrityError{Path: "model.safetensors"}, exitDamage, "Copy the bundle again"},
		"another lock than ours": {&store.LockConflictError{Path: "config.json", Why: "x"}, exitStale,
			"contradicts the lock"},
	} {
		f := explain(operate.OfBundle(row.err))
		if f.Code != row.code || !strings.Contains(f.Error(), row.says) || len(f.Next) > 0 {
			t.Errorf("%s: %d %s (%v)", name, f.Code, f.Error(), f.Next)
		}
	}
}

func TestNamesKeepTheirLettersAtTheStartOfASentence(t *testing.T) {
	for in, want := range map[string]string{
		"tokenizer: expected 5 bytes": "tokenizer: expected 5 bytes.",
		"localhost:8080 is busy":      "localhost:8080 is busy.",
		"model-1 is gone":             "model-1 is gone.",
		"org/model is gated":          "org/model is gated.",
		"the hub failed":              "The hub failed.",
		"redirect refused":            "Redirect refused.",
	} {
		if got := sentence(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

// A lock that the hub once told, and that is wrong, is no dead end: the next command is whole, and works.
func TestWrongUnprovenLockCanBeReplaced(t *testing.T) {
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
		"model.safetensors": bytes.Repeat([]byte("weights "), 1000)}}
	server := httptest.NewServer(small)
	defer server.Close()
	env := []string{"HF_ENDPOINT=" + server.URL}
	r.lock(m, map[string][]byte{"config.json": []byte("{}"), "model.safetensors": bytes.Repeat([]byte("others "),
		1000)},
		manifests.Unproven)
	args := []string{"setup", "--yes", "--no-launch", "--model", id}
	code, _, errOut := r.run(env, args...)
	skipWhereTooSmall(t, code, errOut)
	if code != exitConsent || !strings.Contains(errOut, "then add --accept-told, or") {
		t.Fatalf("%d\n%s", code, errOut)
	}
	code, _, errOut = r.run(env, append(args, "--accept-told")...)
	for _, part := range []string{"models lock", "--replace", "--model " + id, "--home"} {
		if code != exitStale || !strings.Contains(errOut[max(0, strings.LastIndex(errOut, "Next:")):], part) {
			t.Fatalf("%d, no %q\n%s", code, part, errOut)
		}
	}
	// What the replaced lock leaves: the new one, and set-up continues with it.
	home, err := apply.OpenHome(r.home, "")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	lock, err := store.LoadLock(home.Root, m.Repo, m.Revision)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range lock.Files {
		lock.Files[i].Size, lock.Files[i].SHA256 = int64(len(small.files[f.Path])),
			manifests.DigestOf(sha256.Sum256(small.files[f.Path]))
	}
	if err := store.ReplaceLock(home.Root, lock); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := r.run(env, append(args, "--accept-told")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	// An interrupted set-up: its plan is open, and gc offers nothing of it.
	for _, bad := range []struct {
		env  string
		code int
	}{{"HF_ENDPOINT=ftp://nowhere", exitUsage}, {"HF_TOKEN=hf_a\nhf_b", exitAuth}} {
		if err := home.Root.Remove(filepath.Join(store.ModelDir(m.Repo, m.Revision), "config.json")); err != nil {
			t.Fatal(err)
		}
		if code, _, errOut := r.run([]string{env[0], bad.env}, append(args, "--accept-told")...); code != bad.code ||
			strings.Contains(errOut, "fault of slipway") {
			t.Errorf("%q: %d\n%s", bad.env, code, errOut)
		}
		if code, out, _ := r.run(nil, "gc", "--dry-run"); strings.Contains(out, store.RepoDir(m.Repo)) {
			t.Errorf("gc with an open plan: %d\n%s", code, out)
		}
		if code, _, errOut := r.run(env, append(args, "--accept-told")...); code != 0 {
			t.Fatalf("%d\n%s", code, errOut)
		}
	}
}
