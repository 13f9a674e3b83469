package installer

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
)

// A folder with the weights is used in place only when that was asked for: whatever room there is, and whether or not
// the file list is known, the model of the plan is the same. Where there is no room the folder is named.
func TestWeightsThatAreHereAreUsedInPlaceOnlyWhenAskedFor(t *testing.T) {
	const size = 600 << 20
	m, ok := manifests.ByID("qwen3.8-27b-mtplx-bare-speed")
	if !ok {
		t.Fatal("no such manifest")
	}
	lock := manifests.Lock{SchemaVersion: manifests.LockSchemaVersion, Repo: m.Repo, Revision: m.Revision,
		Files: []manifests.File{{Path: "model.safetensors", Size: size, SHA256: manifests.DigestOf([32]byte{1}),
			Proof: manifests.Proven}}}
	user := t.TempDir()
	places := store.Sources(m.Repo, user, func(string) string { return "" })
	placed := func(lock *manifests.Lock, asked bool) (choice, error) {
		t.Helper()
		c := choice{manifest: m, lock: lock}
		c.pin(Input{}, known{})
		c.lock = lock
		err := c.place(t.Context(), Input{Request: plan.Request{InPlace: asked}}, known{}, places)
		return c, err
	}
	var wrong *ChoiceError
	if _, err := placed(&lock, true); !errors.As(err, &wrong) {
		t.Fatalf("in place, and nothing is here: %v", err)
	}
	before, err := placed(nil, false)
	if err != nil || before.couldUse(places) != "" {
		t.Fatalf("nothing is here, and %q could be used: %v", before.couldUse(places), err)
	}
	folder := places[0]
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string]int64{"model.safetensors": size, "config.json": 2} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(folder, name), bytes); err != nil {
			t.Fatal(err)
		}
	}
	lock.Files = append(lock.Files, manifests.File{Path: "config.json", Size: 2, Proof: manifests.Proven,
		SHA256: manifests.DigestOf([32]byte{2})})
	for what, list := range map[string]*manifests.Lock{"with the list": &lock, "without it": nil} {
		c, err := placed(list, false)
		if err != nil || !reflect.DeepEqual(c.model, before.model) || c.couldUse(places) != folder {
			t.Errorf("%s it is another plan: %+v, want %+v; %q could be used (%v)", what, c.model, before.model,
				c.couldUse(places), err)
		}
	}
	if c, err := placed(&lock, true); err != nil || c.model.InPlace != folder {
		t.Errorf("asked for: %q (%v)", c.model.InPlace, err)
	}
}
