//go:build unix

package weights

import (
	"bytes"
	"maps"
	"os"
	"testing"
	"unsafe"

	"slipway/engine/weights/fixture"
)

// A vision tower of 20 MiB between the tensors is left out; each tensor of the model is in a run that begins on a page.
func TestMappingsThatLeaveATensorOutOrTakeTheVisionTowerIn(t *testing.T) {
	f := minimal()
	f["model.layers.0.odd"] = fixture.F32(make([]float32, 3), 3)
	f["model.visual.blocks"] = fixture.F32(make([]float32, 5<<20), 5<<20) // sorts after the layers
	f["model.zlast"] = fixture.F32([]float32{1, 2, 3}, 3)
	files := single(f)
	files["mtp.safetensors"] = fixture.File{"mtp.fc.weight": fixture.F32(make([]float32, 8), 4, 2)}
	c := open(t, write(t, map[string]any{}, files, false))
	runs := c.Mappings()
	total, page := 0, uintptr(os.Getpagesize())
	for _, run := range runs {
		total += len(run)
		if uintptr(unsafe.Pointer(&run[0]))%page != 0 {
			t.Errorf("a run of %d bytes does not begin on a page", len(run))
		}
	}
	if len(runs) != 3 || total > 1<<20 {
		t.Errorf("%d runs of %d bytes, wanted 3 without the tower", len(runs), total)
	}
	maps.Copy(c.tensors, c.mtp.sidecar.tensors)
	for name, tensor := range c.tensors {
		inside := false
		for _, run := range runs {
			from, at := uintptr(unsafe.Pointer(&run[0])), uintptr(unsafe.Pointer(&tensor.Data[0]))
			inside = inside || at >= from && at+uintptr(len(tensor.Data)) <= from+uintptr(len(run))
		}
		if !inside {
			t.Errorf("%s is in no run", name)
		}
	}
	if last := c.tensors["model.zlast"]; !bytes.Equal(last.Data, runs[1][len(runs[1])-12:]) {
		t.Error("the second run does not end with the last tensor")
	}
}
