package installer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/installer/apply"
	"slipway/installer/pin"
	"slipway/installer/store"
	"slipway/manifests"
	testhub "slipway/test/hub"
)

func TestLockModelKeepsAProvenLockInTheHomeAndRefusesAContradiction(t *testing.T) {
	server, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo, err := server.Add("test/model", testhub.File{Path: "config.json", Content: testhub.Bytes([]byte("{}"))},
		testhub.File{Path: "model.safetensors", Content: testhub.Pattern(1, 100_000), LFS: true},
		testhub.File{Path: "README.md", Content: testhub.Bytes([]byte("not wanted"))})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "home")
	at := Environment{Getenv: func(name string) string {
		return map[string]string{"HF_ENDPOINT": server.URL, "HOME": t.TempDir(), "NO_PROXY": "127.0.0.1"}[name]
	}}
	m := manifests.Manifest{ID: "test", Repo: "test/model", Revision: repo.Revision,
		Include: []string{"*.json", "*.safetensors"}}
	locked, err := lockManifest(t.Context(), m, LockInput{Home: path}, at)
	if err != nil {
		t.Fatal(err)
	}
	if len(locked.Lock.Files) != 2 || locked.Lock.Files[1].Proof != manifests.Proven ||
		locked.Lock.Files[1].Size != 100_000 {
		t.Fatalf("%+v", locked.Lock)
	}
	home, err := apply.OpenHome(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	if found, ok := lockOf(m, known{home: home}); !ok || found.TotalBytes() != locked.Lock.TotalBytes() {
		t.Fatalf("set-up does not find it: %+v", found)
	}
	// A lock available that names other bytes for this revision: one of the two is wrong.
	data, err := os.ReadFile(filepath.Join(path, locked.Path))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(data), "100000", "100001", 1)
	if err := os.WriteFile(filepath.Join(path, locked.Path), []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	var conflict *store.LockConflictError
	if _, err := lockManifest(t.Context(), m, LockInput{Home: path}, at); !errors.As(err, &conflict) {
		t.Fatalf("%v", err)
	}
	// The way out, when somebody asks for it.
	if _, err := lockManifest(t.Context(), m, LockInput{Home: path, Replace: true}, at); err != nil {
		t.Fatal(err)
	}
	if found, ok := lockOf(m, known{home: home}); !ok || found.TotalBytes() != locked.Lock.TotalBytes() {
		t.Fatalf("not replaced: %+v", found)
	}
}

func TestLockModelWithoutProofIsRefusedFromAMirror(t *testing.T) {
	server, err := testhub.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m, ok := manifests.ByID("qwen3.5-4b-4bit")
	if !ok {
		t.Fatal("no such manifest")
	}
	// The git side is there and does not have the pinned commit.
	if _, err := server.Add(
		m.Repo, testhub.File{Path: "config.json", Content: testhub.Bytes([]byte("{}"))}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "home")
	at := Environment{Getenv: func(name string) string {
		return map[string]string{"HF_ENDPOINT": server.URL, "HOME": t.TempDir(), "NO_PROXY": "127.0.0.1"}[name]
	}}
	_, err = LockModel(t.Context(), LockInput{Home: path, Model: m.ID, AcceptUnproven: true}, at)
	var told *pin.UnprovenError
	if !errors.As(err, &told) || !told.Mirror {
		t.Fatalf("%v", err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Fatal("a home was made")
	}
}
