package mtphead_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"slipway/manifests"
	"slipway/mtphead"
	"slipway/safetensors"
)

// tensorsOf are the tensors of a file by name.
func tensorsOf(t *testing.T, data []byte) map[string]safetensors.Tensor {
	t.Helper()
	entries, err := safetensors.ReadHeader("file", data, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]safetensors.Tensor{}
	for _, e := range entries {
		all[e.Name] = safetensors.Tensor{Name: e.Name, DType: e.DType, Shape: e.Shape, Data: data[e.Begin:e.End]}
	}
	return all
}

// original is Pocket before it was quantised.
func original(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("../engine/model/testdata/bf16/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func pocketShapes() map[string][]int64 {
	pocket, _ := manifests.ByID(manifests.PocketID)
	return mtphead.Shapes(pocket.Geometry)
}

// fetched puts a list's ranges one after the other, as they are fetched.
func fetched(list mtphead.List, file []byte) []byte {
	var raw []byte
	for _, run := range list.Runs() {
		raw = append(raw, file[run.From:run.To]...)
	}
	return raw
}

// The head that is cut out of Pocket's original is, byte for byte, the one of Pocket's own 4-bit pack: so are its
// tokens.
func TestHeadOfTheOriginalIsThatOfThePack(t *testing.T) {
	file := original(t)
	entries, err := safetensors.ReadHeader("model.safetensors", file, int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	list, err := mtphead.Collect(map[string][]safetensors.Entry{"model.safetensors": entries}, "mtp.", pocketShapes())
	if err != nil {
		t.Fatal(err)
	}
	made, err := mtphead.Convert(bytes.NewReader(fetched(list, file)), list)
	if err != nil {
		t.Fatal(err)
	}
	pack, err := fs.ReadFile(manifests.Pocket(), "model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	got, want := tensorsOf(t, made), tensorsOf(t, pack)
	maps.DeleteFunc(want, func(name string, _ safetensors.Tensor) bool { return !strings.HasPrefix(name, "mtp.") })
	if len(got) != len(want) || len(got) != 31 {
		t.Errorf("%d tensors, the pack has %d", len(got), len(want))
	}
	for name, w := range want {
		if g := got[name]; g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) || !bytes.Equal(g.Data, w.Data) {
			t.Errorf("%s: %s %v, %d bytes that differ from the pack's %s %v, %d bytes", name, g.DType, g.Shape,
				len(g.Data), w.DType, w.Shape, len(w.Data))
		}
	}
	before, after := mtphead.Bytes(pocketShapes())
	pocket, _ := manifests.ByID(manifests.PocketID)
	if before != list.Bytes() || after != pocket.Geometry.MTPBytes {
		t.Errorf("sized %d and %d bytes, the original has %d and the pack %d", before, after, list.Bytes(),
			pocket.Geometry.MTPBytes)
	}
}

// What the manifests say of heads is what their shapes take.
func TestManifestsHaveTheSizesOfTheirHeads(t *testing.T) {
	heads := 0
	for _, m := range manifests.All() {
		if m.Draft == nil || m.Draft.Tensors == "" {
			continue
		}
		heads++
		before, after := mtphead.Bytes(mtphead.Shapes(m.Geometry))
		if m.Draft.DownloadBytes != before || m.Geometry.MTPBytes != after {
			t.Errorf("%s: %d bytes to fetch and %d in 4 bit, the shapes take %d and %d", m.ID, m.Draft.DownloadBytes,
				m.Geometry.MTPBytes, before, after)
		}
	}
	if heads != 2 {
		t.Errorf("%d heads", heads)
	}
}

func TestHeadsOfOtherShapesAreRefused(t *testing.T) {
	file := original(t)
	entries, _ := safetensors.ReadHeader("model.safetensors", file, int64(len(file)))
	change := func(edit func(*safetensors.Entry) bool) map[string][]safetensors.Entry {
		var all []safetensors.Entry
		for _, e := range entries {
			if edit(&e) {
				all = append(all, e)
			}
		}
		return map[string][]safetensors.Entry{"model.safetensors": all}
	}
	is := func(e *safetensors.Entry) bool { return e.Name == "mtp.fc.weight" }
	twice := change(func(*safetensors.Entry) bool { return true })
	twice["more.safetensors"] = slices.DeleteFunc(slices.Clone(entries),
		func(e safetensors.Entry) bool { return !is(&e) })
	for _, c := range []struct {
		name    string
		headers map[string][]safetensors.Entry
		says    string
	}{
		{"a tensor is missing", change(func(e *safetensors.Entry) bool { return !is(e) }),
			"fc.weight: found 0 tensors"},
		{"a tensor is in two shards", twice, "fc.weight: found 2 tensors"},
		{"another shape", change(func(e *safetensors.Entry) bool {
			if is(e) {
				e.Shape = []int64{640, 320}
			}
			return true
		}), "found [640 320], wanted [320 640]"},
		{"another type", change(func(e *safetensors.Entry) bool {
			if is(e) {
				e.DType = "F16"
			}
			return true
		}), "found dtype F16, wanted BF16"},
		{"a second layer", change(func(e *safetensors.Entry) bool {
			e.Name = strings.Replace(e.Name, "mtp.layers.0.mlp.up", "mtp.layers.1.mlp.up", 1)
			return true
		}), "layers.1.mlp.up_proj.weight"},
	} {
		_, err := mtphead.Collect(c.headers, "mtp.", pocketShapes())
		if !errors.As(err, new(*safetensors.MisfitError)) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	list, _ := mtphead.Collect(change(func(*safetensors.Entry) bool { return true }), "mtp.", pocketShapes())
	raw := fetched(list, file)
	raw[len(raw)/2&^1], raw[len(raw)/2|1] = 0xc0, 0x7f
	if _, err := mtphead.Convert(bytes.NewReader(raw), list); err == nil || !strings.Contains(err.Error(), "finite") {
		t.Errorf("a value that is not a number: %v", err)
	}
	for _, index := range []string{"<html>", "{}", `{"weight_map":{"model.norm.weight":"a"}}`} {
		if _, err := mtphead.Shards([]byte(index), "mtp."); !errors.As(err, new(*safetensors.MisfitError)) {
			t.Errorf("index %s: %v", index, err)
		}
	}
	index, _ := json.Marshal(map[string]any{"weight_map": map[string]string{"mtp.a": "2", "mtp.b": "1", "x": "3"}})
	if files, err := mtphead.Shards(index, "mtp."); err != nil || !slices.Equal(files, []string{"1", "2"}) {
		t.Errorf("shards %v, %v", files, err)
	}
}
