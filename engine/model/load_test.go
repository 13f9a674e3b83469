package model

import (
	"errors"
	"strings"
	"testing"

	"slipway/engine/device/cpu"
	"slipway/engine/weights"
	"slipway/engine/weights/fixture"
)

// Every tensor of every kind of layer, missing, of another shape or of another type, is named by Load.
func TestLoadNamesEachTensorThatDoesNotFit(t *testing.T) {
	raw, config := pocketTensors(t)
	for name, v := range raw { // values decide nothing here, and a file of zeros is quickly written
		v.Data = make([]byte, len(v.Data))
		raw[name] = v
	}
	dev := cpu.New(1)
	defer dev.Close()
	check := func(t *testing.T, name string, f fixture.File, found ...string) {
		t.Helper()
		dir := t.TempDir()
		if err := fixture.Write(dir, config, map[string]fixture.File{"model.safetensors": f}, false); err != nil {
			t.Fatal(err)
		}
		ckpt, err := weights.Open(dir)
		if err == nil {
			defer ckpt.Close()
			_, err = Load(dev, ckpt, Options{WindowTokens: 256, MaxSequences: 1, Draft: DraftMTP})
		}
		var m *weights.MisfitError
		if !errors.As(err, &m) {
			t.Fatalf("error %v, wanted a misfit", err)
		}
		if m.File != "model.safetensors" || !strings.HasSuffix(name, m.Tensor) {
			t.Fatalf("%q does not name %s", m, name)
		}
		for _, f := range found {
			if strings.Contains(m.Found, f) {
				return
			}
		}
		t.Fatalf("%q does not say %q", m, found)
	}
	kinds := 0
	for name, v := range raw {
		if strings.Contains(name, "layers.") && !strings.Contains(name, "layers.0.") &&
			!strings.Contains(name, "layers.3.") {
			continue
		}
		kinds++
		edited := func(edit func(*fixture.Tensor)) fixture.File {
			f := fixture.File{}
			for other, w := range raw {
				f[other] = w
			}
			w := v
			edit(&w)
			f[name] = w
			return f
		}
		t.Run(name, func(t *testing.T) {
			// without these it is another kind of checkpoint
			if name != "model.embed_tokens.weight" && name != "mtp.fc.weight" {
				f := edited(func(*fixture.Tensor) {})
				delete(f, name)
				check(t, name, f, "no such tensor")
			}
			check(t, name, edited(func(w *fixture.Tensor) { w.Shape = append([]int{1}, w.Shape...) }), "shape")
			if !strings.Contains(name, "conv1d") {
				check(t, name, edited(func(w *fixture.Tensor) { w.DType = "I16" }), "dtype I16")
			}
		})
	}
	if kinds < 40 {
		t.Errorf("only %d tensors were tried", kinds)
	}
}

func TestVocabularyOfAnotherSizeIsRefused(t *testing.T) {
	raw, config := pocketTensors(t)
	dir := t.TempDir()
	if err := fixture.Write(dir, with(config, map[string]any{"vocab_size": 4095}), map[string]fixture.File{
		"model.safetensors": raw}, false); err != nil {
		t.Fatal(err)
	}
	ckpt, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	dev := cpu.New(1)
	defer dev.Close()
	var m *weights.MisfitError
	if _, err := Load(dev, ckpt, Options{}); !errors.As(err, &m) || m.Tensor != "vocab_size" || m.Found != "4095" {
		t.Errorf("error %v", err)
	}
}
