package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifests"
)

// Without Metal the real model is offered with an estimate of its speed; once it answers, the measured speed is told
// beside the estimate, to a person and in the document.
func TestRealModelOnAProcessorHasAnEstimateAndThenAMeasuredSpeed(t *testing.T) {
	t.Parallel()
	hub, revisions := threeModels(t)
	r := newRig(t)
	recording, err := os.ReadFile("../../installer/machine/testdata/debian-12.txt")
	if err != nil {
		t.Fatal(err)
	}
	machine := filepath.Join(r.dir, "machine.txt")
	whole := bytes.Replace(recording, []byte("4294967296"), []byte("max"), 1) // no container: 8 GB
	if err := os.WriteFile(machine, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"TEST_MACHINE=" + machine, "TEST_REVISIONS=" + revisions, "HF_ENDPOINT=" + hub.URL}
	_, out, errOut := r.run(env, r.setupArgs("--dry-run")...)
	if !strings.Contains(out, "Real model: --model qwen3.5-4b-4bit, 3.06 GB; about 1.4 tokens a second here (estimated).") {
		t.Errorf("the real model is not offered beside Pocket:\n%s%s", out, errOut)
	}
	digest := func(env []string) string {
		t.Helper()
		_, out, errOut := r.run(env, r.setupArgs("--dry-run", "--json", "--model", "qwen3.5-4b-4bit")...)
		var p struct{ Data struct{ Digest string } }
		if err := json.Unmarshal([]byte(out), &p); err != nil || p.Data.Digest == "" {
			t.Fatalf("%v\n%s%s", err, out, errOut)
		}
		return p.Data.Digest
	}
	before := digest(env)
	code, out, errOut := r.run(env, r.setupArgs("--yes", "--model", "qwen3.5-4b-4bit")...)
	if code != 0 || !strings.Contains(errOut, "About 1.4 tokens a second here (estimated; measured after the start).") ||
		!strings.Contains(out, "Speed: 2.5 tokens a second, measured over 10 tokens (1.4 were estimated).") {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	if after := digest(env); after != before {
		t.Errorf("the digest is %s after the measurement, was %s", after, before)
	}
	code, out, errOut = r.run(env, r.setupArgs("--yes", "--json")...)
	var answer struct {
		Data struct{ Speed map[string]float64 }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 0 ||
		answer.Data.Speed["tokens_per_second"] != 2.5 || answer.Data.Speed["tokens"] != 10 {
		t.Errorf("%d %v %+v\n%s", code, err, answer, errOut)
	}
	m, _ := manifests.ByID("qwen3.5-4b-4bit")
	want := 4.3e9 / float64(m.Geometry.WeightsBytes)
	if got := answer.Data.Speed["estimated_tokens_per_second"]; got != want {
		t.Errorf("estimated %f, want %f", got, want)
	}
}
