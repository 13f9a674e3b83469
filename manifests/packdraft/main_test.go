package main

import (
	"bytes"
	"os"
	"testing"
)

func TestShippedDraftIsThe4BitFormOfTheTrainedWeights(t *testing.T) {
	config, tensors, err := pack("../" + trained)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"dflash2.json": config, "dflash2.safetensors": tensors} {
		got, err := os.ReadFile("../pocket/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is another: run go generate ./manifests", name)
		}
	}
}
