package families_test

import (
	"errors"
	"os"
	"testing"

	"slipway/engine/families"
	"slipway/engine/weights"
	"slipway/manifests"
)

func TestUnknownModelTypeIsRefusedByName(t *testing.T) {
	for _, config := range []string{`{"model_type":"llama"}`, `{}`, `[`, ``} {
		var misfit *weights.MisfitError
		if f, err := families.Of([]byte(config)); !errors.As(err, &misfit) {
			t.Errorf("%q: family %+v, %v", config, f, err)
		}
	}
}

// The installer sizes by the manifest, the engine by config.json: both must have the same shape.
func TestManifestHasTheGeometryOfTheConfig(t *testing.T) {
	m, ok := manifests.ByID("pocket")
	if !ok {
		t.Fatal("there is no Pocket")
	}
	config, err := os.ReadFile("../../manifests/pocket/config.json")
	if err != nil {
		t.Fatal(err)
	}
	f, err := families.Of(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.Network.Parse(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := m.Geometry
	want.WeightsBytes, want.MTPBytes = 0, 0
	if got := c.Geometry(); got != want {
		t.Errorf("config.json gives %+v, the manifest %+v", got, want)
	}
}
