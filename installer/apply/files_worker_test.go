package apply

import (
	"path"
	"testing"

	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
)

// A download that stopped near its end must not be refused for want of the space that it holds already.
func TestMissingBytesCountWhatHasArrived(t *testing.T) {
	home := makeHome(t)
	size := int64(1 << 20)
	lock := manifests.Lock{SchemaVersion: 1, Repo: "a/b", Revision: "1111111111111111111111111111111111111111",
		Files: []manifests.File{{Path: "w.safetensors", Size: size, SHA256: manifests.DigestOf([32]byte{1}),
			Proof: manifests.Proven}}}
	w := filesWorker{part: plan.Part{Model: plan.Model{Bytes: size, Folder: store.ModelDir(lock.Repo, lock.Revision)}},
		from: Source{List: &FileList{&lock}}}
	for _, row := range []struct {
		arrived, missing int64
	}{{0, size}, {size / 2, size / 2}, {size, 0}} {
		if err := home.Root.MkdirAll(path.Join(store.ModelsDir, ".partial"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := home.Root.WriteFile(path.Join(store.ModelsDir, ".partial", lock.Files[0].SHA256.Hex()+".part"),
			make([]byte, row.arrived), 0o600); err != nil {
			t.Fatal(err)
		}
		condition, err := w.Check(t.Context(), home)
		if err != nil || condition.Done || condition.MissingBytes > row.missing ||
			condition.MissingBytes < row.missing-8192 {
			t.Errorf("%d arrived: %+v %v, want about %d missing", row.arrived, condition, err, row.missing)
		}
	}
	if condition, err := w.Check(t.Context(), nil); err != nil || condition.MissingBytes != size {
		t.Errorf("without a home: %+v %v", condition, err)
	}
}
