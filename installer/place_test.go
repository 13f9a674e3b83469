package installer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
)

// Without room for a copy a model that is here already is used in place; with room it is copied; a whole copy is
// never given up for it; and nobody is told of a folder that is not there.
func TestWeightsThatAreHereAreUsedInPlaceWithoutRoomForACopy(t *testing.T) {
	const size = 600 << 20
	m, ok := manifests.ByID("qwen3.8-27b-mtplx-bare-speed")
	if !ok {
		t.Fatal("no such manifest")
	}
	lock := manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: m.Repo, Revision: m.Revision,
		Files: []manifests.File{{Path: "model.safetensors", Size: size, SHA256: manifests.DigestOf([32]byte{1}),
			Proof: manifests.Proven}}}
	user := t.TempDir()
	at := Environment{UserHome: user, Getenv: func(string) string { return "" }}
	places := store.Sources(m.Repo, at.UserHome, at.Getenv)
	home := filepath.Join(user, "home")
	placed := func(free int64, in Input) (string, error) {
		t.Helper()
		c := choice{manifest: m, lock: &lock}
		var facts machine.Facts
		facts.DiskFree.Known, facts.DiskFree.Value = true, free
		err := c.place(t.Context(), in, home, known{}, places, facts)
		return c.model.InPlace, err
	}
	if folder, err := placed(300<<20, Input{}); err != nil || folder != "" {
		t.Fatalf("nothing is here, and %q is used: %v", folder, err)
	}
	var choice *ChoiceError
	if _, err := placed(1<<40, Input{Request: plan.Request{InPlace: true}}); !errors.As(err, &choice) {
		t.Fatalf("in place, and nothing is here: %v", err)
	}
	folder := places[0]
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join(folder, "model.safetensors")
	if err := os.WriteFile(weights, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(weights, size); err != nil {
		t.Fatal(err)
	}
	want := folder
	if store.ClonableBytes(t.Context(), home, lock, []string{"model.safetensors"}, places) == size {
		want = "" // a clone takes no room
	}
	if got, err := placed(300<<20, Input{}); err != nil || got != want {
		t.Errorf("no room: %q, want %q (%v)", got, want, err)
	}
	if got, err := placed(1<<40, Input{}); err != nil || got != "" {
		t.Errorf("room enough: %q (%v)", got, err)
	}
	if got, err := placed(1<<40, Input{Request: plan.Request{InPlace: true}}); err != nil || got != folder {
		t.Errorf("asked for: %q (%v)", got, err)
	}
}
